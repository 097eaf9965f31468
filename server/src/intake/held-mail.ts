import type { SMTPServerDataStream } from 'smtp-server'
import { Refusal } from './replies.ts'

// One part in so many: a single holder never shuts the door for the others.
const parts = 4

/** The octets of mails that all sessions together hold in memory. Nobody holds more than a quarter of them. */
export class Budget {
  readonly #share: number
  #free: number
  readonly #held = new Map<string, number>()

  constructor(octets: number) {
    this.#free = octets
    this.#share = octets / parts
  }

  has(octets: number, whose: string): boolean {
    return octets <= this.#free && octets <= this.#share - (this.#held.get(whose) ?? 0)
  }

  take(octets: number, whose: string): boolean {
    if (!this.has(octets, whose)) return false
    this.#add(octets, whose)
    return true
  }

  giveBack(octets: number, whose: string): void {
    this.#add(-octets, whose)
  }

  #add(octets: number, whose: string): void {
    this.#free -= octets
    const held = (this.#held.get(whose) ?? 0) + octets
    if (held > 0) this.#held.set(whose, held)
    else this.#held.delete(whose)
  }
}

const blockBytes = 64 * 1024

/**
 * A client chooses how small its pieces are: kept one by one, they would take up far more than they hold. A block counts
 * as a whole from its first octet on.
 */
export class Gathered {
  readonly #budget: Budget
  readonly #whose: string
  #blocks: Buffer[] = []
  #length = 0
  #counted = 0

  constructor(budget: Budget, whose: string) {
    this.#budget = budget
    this.#whose = whose
  }

  /** False when there is no room for all of it. */
  add(piece: Buffer): boolean {
    for (let at = 0; at < piece.length; ) {
      const from = this.#length % blockBytes
      if (from === 0 && !this.#begin()) return false
      const copied = piece.copy(this.#blocks.at(-1) as Buffer, from, at)
      this.#length += copied
      at += copied
    }
    return true
  }

  #begin(): boolean {
    if (!this.#budget.take(blockBytes, this.#whose)) return false
    this.#counted += blockBytes
    this.#blocks.push(Buffer.allocUnsafeSlow(blockBytes))
    return true
  }

  /** What there is. It counts until it is dropped. */
  whole(): Buffer {
    const all = Buffer.concat(this.#blocks, this.#length)
    this.#blocks = []
    return all
  }

  drop(): void {
    this.#blocks = []
    this.#length = 0
    this.#budget.giveBack(this.#counted, this.#whose)
    this.#counted = 0
  }
}

/**
 * A mail to its end, and what is done with it, in as much memory as there is for it. Undefined when it is too large:
 * smtp-server refuses it then, whatever is said here. Throws when the client is gone before the end.
 */
export async function withMail<T>(
  stream: SMTPServerDataStream,
  { budget, whose }: { budget: Budget; whose: string },
  use: (raw: Buffer) => Promise<T>,
): Promise<T | undefined> {
  const gathered = new Gathered(budget, whose)
  let isOver = false
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (!isOver && !stream.sizeExceeded) isOver = !gathered.add(chunk)
      if (isOver || stream.sizeExceeded) gathered.drop()
    }
    if (stream.sizeExceeded) return undefined
    if (isOver) throw new Refusal(452, '4.3.1 Too much mail at once; come again')
    return await use(gathered.whole())
  } finally {
    gathered.drop()
  }
}
