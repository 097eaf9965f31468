import type { SMTPServerDataStream } from 'smtp-server'
import { Refusal } from './replies.ts'

// Each owner can use one quarter of the budget, so a single owner never blocks the others.
const ownersAtFullShare = 4

// By then, most messages have arrived. A client that stalls keeps its memory only until others need it.
const evictAfterMs = 10_000

/** A message that is being received. */
interface IncomingMail {
  /** The first is the sending network or project. */
  readonly owners: readonly string[]
  /** Releases its memory; the message will be rejected. */
  evict(): void
}

/**
 * Limits the number of octets of mail that all sessions together buffer in memory. An owner is a network or a
 * recipient's project, and can use at most a quarter of the budget.
 *
 * Any client can fill a recipient's share, and a few networks together can fill the whole budget. If this
 * leaves no room for another network, messages that have been arriving for more than ten seconds are evicted,
 * oldest first.
 */
export class BufferBudget {
  readonly #share: number
  #free: number
  readonly #buffered = new Map<string, number>()
  /** With their start times, oldest first. */
  readonly #incoming = new Map<IncomingMail, number>()
  readonly #now: () => number

  constructor(octets: number, now: () => number = () => performance.now()) {
    this.#free = octets
    this.#share = octets / ownersAtFullShare
    this.#now = now
  }

  begin(mail: IncomingMail): void {
    this.#incoming.set(mail, this.#now())
  }

  /** The message is complete or aborted, and is no longer evicted. */
  end(mail: IncomingMail): void {
    this.#incoming.delete(mail)
  }

  /** Whether there is room, if necessary after evicting other messages. */
  makeRoom(octets: number, ...owners: readonly string[]): boolean {
    const [sender = ''] = owners
    for (const [mail, since] of this.#incoming) {
      if (this.hasRoom(octets, ...owners) || !this.#hasShare(octets, sender)) break
      if (this.#now() - since < evictAfterMs) break
      const full = owners.filter((owner) => !this.#hasShare(octets, owner))
      const freesRoom = full.every((owner) => mail.owners.includes(owner))
      if (mail.owners[0] !== sender && freesRoom) mail.evict()
    }
    return this.hasRoom(octets, ...owners)
  }

  hasRoom(octets: number, ...owners: readonly string[]): boolean {
    return octets <= this.#free && owners.every((owner) => this.#hasShare(octets, owner))
  }

  #hasShare(octets: number, owner: string): boolean {
    return octets <= this.#share - (this.#buffered.get(owner) ?? 0)
  }

  reserve(octets: number, ...owners: readonly string[]): boolean {
    if (!this.makeRoom(octets, ...owners)) return false
    this.#add(octets, owners)
    return true
  }

  release(octets: number, ...owners: readonly string[]): void {
    this.#add(-octets, owners)
  }

  #add(octets: number, owners: readonly string[]): void {
    this.#free -= octets
    for (const owner of owners) {
      const buffered = (this.#buffered.get(owner) ?? 0) + octets
      if (buffered > 0) this.#buffered.set(owner, buffered)
      else this.#buffered.delete(owner)
    }
  }
}

const blockBytes = 64 * 1024

/**
 * The octets of one message, copied into blocks. The client determines the chunk size; stored individually,
 * small chunks would use far more memory than their content. A block is charged in full from its first octet.
 */
export class BufferedMail implements IncomingMail {
  readonly #budget: BufferBudget
  readonly owners: readonly string[]
  #blocks: Buffer[] = []
  #length = 0
  #reserved = 0
  isEvicted = false

  constructor(budget: BufferBudget, ...owners: readonly string[]) {
    this.#budget = budget
    this.owners = owners
    budget.begin(this)
  }

  /** Returns false if there is not enough room for the chunk. */
  add(chunk: Buffer): boolean {
    if (this.isEvicted) return false
    for (let at = 0; at < chunk.length; ) {
      const from = this.#length % blockBytes
      if (from === 0 && !this.#addBlock()) return false
      const copied = chunk.copy(this.#blocks.at(-1) as Buffer, from, at)
      this.#length += copied
      at += copied
    }
    return true
  }

  #addBlock(): boolean {
    if (!this.#budget.reserve(blockBytes, ...this.owners)) return false
    this.#reserved += blockBytes
    this.#blocks.push(Buffer.allocUnsafeSlow(blockBytes))
    return true
  }

  /**
   * Returns the complete message in one buffer. The message is charged to the budget until it is dropped.
   * With `isShared`, it is in shared memory, which other threads can read without copying.
   */
  concat(isShared = false): Buffer {
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
    this.#budget.release(this.#reserved, ...this.owners)
    this.#reserved = 0
  }
}

export const bufferFull = (): Refusal =>
  new Refusal(452, '4.3.1 Insufficient system storage, try again later')

/**
 * Reads a message to its end within the budget and calls `use` with it. Resolves to undefined if the message
 * is too large: smtp-server then rejects it regardless of the result. Throws if the client disconnects before
 * the end.
 */
export async function withBufferedMail<T>(
  stream: SMTPServerDataStream,
  { budget, owners, isShared }: { budget: BufferBudget; owners: readonly string[]; isShared?: boolean },
  use: (raw: Buffer) => Promise<T>,
): Promise<T | undefined> {
  const mail = new BufferedMail(budget, ...owners)
  let isOver = false
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (!isOver && !stream.sizeExceeded) isOver = !mail.add(chunk)
      if (isOver || stream.sizeExceeded) mail.drop()
    }
    if (stream.sizeExceeded) return undefined
    if (isOver || mail.isEvicted) throw bufferFull()
    return await use(mail.concat(isShared))
  } finally {
    mail.drop()
  }
}
