import type { SMTPServerDataStream } from 'smtp-server'
import { Refusal } from './replies.ts'

// One part in so many: a single holder never shuts the door for the others.
const parts = 4

// Most mails have come by then. Who stops in the middle of one keeps its memory no longer than others can do without it.
const patienceMs = 10_000

/** A mail that is still coming in. */
interface Coming {
  /** The first is who brings it. */
  readonly holders: readonly string[]
  /** Gives back what it holds; the mail will be refused. */
  evict(): void
}

/**
 * The octets of mails that all sessions together hold in memory. A holder is a network or an addressee's project, and none
 * holds more than a quarter of them.
 *
 * Anybody can fill the share of an addressee, and a few networks together can fill all of it. So a mail that has been coming
 * in for ten seconds is evicted, the oldest first, when another network has no room because of it.
 */
export class Budget {
  readonly #share: number
  #free: number
  readonly #held = new Map<string, number>()
  /** Since when, the oldest first. */
  readonly #coming = new Map<Coming, number>()
  readonly #now: () => number

  constructor(octets: number, now: () => number = () => performance.now()) {
    this.#free = octets
    this.#share = octets / parts
    this.#now = now
  }

  begin(mail: Coming): void {
    this.#coming.set(mail, this.#now())
  }

  /** It has come, or comes no more. */
  end(mail: Coming): void {
    this.#coming.delete(mail)
  }

  /** Whether there is room, or was made by evicting. */
  makeRoom(octets: number, ...holders: readonly string[]): boolean {
    const [bringer = ''] = holders
    for (const [mail, since] of this.#coming) {
      if (this.has(octets, ...holders) || !this.#hasShare(octets, bringer)) break
      if (this.#now() - since < patienceMs) break
      const full = holders.filter((holder) => !this.#hasShare(octets, holder))
      const isInTheWay = full.every((holder) => mail.holders.includes(holder))
      if (mail.holders[0] !== bringer && isInTheWay) mail.evict()
    }
    return this.has(octets, ...holders)
  }

  has(octets: number, ...holders: readonly string[]): boolean {
    return octets <= this.#free && holders.every((holder) => this.#hasShare(octets, holder))
  }

  #hasShare(octets: number, holder: string): boolean {
    return octets <= this.#share - (this.#held.get(holder) ?? 0)
  }

  take(octets: number, ...holders: readonly string[]): boolean {
    if (!this.makeRoom(octets, ...holders)) return false
    this.#add(octets, holders)
    return true
  }

  giveBack(octets: number, ...holders: readonly string[]): void {
    this.#add(-octets, holders)
  }

  #add(octets: number, holders: readonly string[]): void {
    this.#free -= octets
    for (const holder of holders) {
      const held = (this.#held.get(holder) ?? 0) + octets
      if (held > 0) this.#held.set(holder, held)
      else this.#held.delete(holder)
    }
  }
}

const blockBytes = 64 * 1024

/**
 * A client chooses how small its pieces are: kept one by one, they would take up far more than they hold. A block counts
 * as a whole from its first octet on.
 */
export class BufferedMail implements Coming {
  readonly #budget: Budget
  readonly holders: readonly string[]
  #blocks: Buffer[] = []
  #length = 0
  #counted = 0
  isEvicted = false

  constructor(budget: Budget, ...holders: readonly string[]) {
    this.#budget = budget
    this.holders = holders
    budget.begin(this)
  }

  /** False when there is no room for all of it. */
  add(piece: Buffer): boolean {
    if (this.isEvicted) return false
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
    if (!this.#budget.take(blockBytes, ...this.holders)) return false
    this.#counted += blockBytes
    this.#blocks.push(Buffer.allocUnsafeSlow(blockBytes))
    return true
  }

  /** What there is. It counts until it is dropped. `isShared`: in memory that threads share without copying it. */
  whole(isShared = false): Buffer {
    this.#budget.end(this)
    const all = isShared
      ? Buffer.from(new SharedArrayBuffer(this.#length))
      : Buffer.allocUnsafeSlow(this.#length)
    for (const [no, block] of this.#blocks.entries()) block.copy(all, no * blockBytes, 0, blockBytes)
    this.#blocks = []
    return all
  }

  evict(): void {
    this.isEvicted = true
    this.drop()
  }

  drop(): void {
    this.#budget.end(this)
    this.#blocks = []
    this.#length = 0
    this.#budget.giveBack(this.#counted, ...this.holders)
    this.#counted = 0
  }
}

/**
 * A mail to its end, and what is done with it, in as much memory as there is for it. Undefined when it is too large:
 * smtp-server refuses it then, whatever is said here. Throws when the client is gone before the end.
 */
export async function withBufferedMail<T>(
  stream: SMTPServerDataStream,
  { budget, holders, isShared }: { budget: Budget; holders: readonly string[]; isShared?: boolean },
  use: (raw: Buffer) => Promise<T>,
): Promise<T | undefined> {
  const gathered = new BufferedMail(budget, ...holders)
  let isOver = false
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (!isOver && !stream.sizeExceeded) isOver = !gathered.add(chunk)
      if (isOver || stream.sizeExceeded) gathered.drop()
    }
    if (stream.sizeExceeded) return undefined
    if (isOver || gathered.isEvicted) throw new Refusal(452, '4.3.1 Too much mail at once; come again')
    return await use(gathered.whole(isShared))
  } finally {
    gathered.drop()
  }
}
