import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Client, type Judgement, judge } from '../../mail/authentication.ts'
import { attachmentIn, type ParsedMail, parseMail } from '../../mail/parsed.ts'
import { sealMime } from '../../mail/seal.ts'
import type { DkimKey } from '../../mail/sign.ts'
import { createResolver, type ResolverOptions } from '../../platform/dns.ts'
import { mailauthResolver } from './look-ups.ts'

/** What is asked about a mail that comes in. */
export interface Examination {
  raw: Uint8Array
  client: Client
  /** As which we judge. */
  name: string
  /** Of each domain that sends it on: its key, and the fields that are added. */
  forwards: { key: DkimKey; fields: string }[]
  /** Whether somebody is to read it. */
  isParsed: boolean
}

export interface Examined extends Judgement {
  /** In the order of `forwards`: as it is sent on. */
  forwarded: Uint8Array[]
  /** Null where nobody asked, or it is nested too deeply or takes too long to read. */
  parsed: ParsedMail | null
}

/** A mail out of which one attachment is wanted. */
interface Extraction {
  raw: Uint8Array
  attachment: number
}

type Order = { examination: Examination } | { extraction: Extraction }
/** `begun`: from here on it may be that nothing is heard for long. It carries all that is known by then. */
type Word =
  | { no: number; begun: Examined | undefined }
  | { no: number; answer: Examined | Uint8Array | undefined }
  | { no: number; fault: string }

export interface ExaminersOptions {
  dns: Pick<ResolverOptions, 'servers'>
  limits?: Partial<typeof limits>
}

const limits = {
  judgedWithinMs: 10_000,
  // Nothing that anybody means to be read takes a fifth of it.
  parsedWithinMs: 10_000,
  // So long a mail takes 0.2 s to parse at worst.
  quickLines: 5_000,
  // Longer than anything above takes: whoever waits and hears nothing of anybody's mail waits for a thread that hangs.
  silentMs: 30_000,
}
const lookup = { timeoutMs: 4_000, tries: 2 }
const role = 'postern examiner'

/**
 * Threads that judge and read mail, so that whoever speaks with its senders is not held up: a mail can be made to take
 * minutes (4 million empty lines took 148 s). Ordinary mail has a thread of its own, long mail another; one that is
 * over its time is ended together with its thread, and whatever else was there is asked anew. What judging would take
 * is bounded by what is given to it (mail/authentication.ts); should a thread hang in it all the same, nobody can say of
 * which mail, so all that wait there fail, and are brought again.
 */
export class Examiners {
  readonly #limits: typeof limits
  readonly #servers: string[]
  readonly #threads: { quick?: Thread; slow?: Thread } = {}
  #isClosed = false

  constructor(options: ExaminersOptions) {
    this.#limits = { ...limits, ...options.limits }
    this.#servers = options.dns.servers
  }

  examine(examination: Examination): Promise<Examined> {
    return this.#ask({ examination }, examination.raw) as Promise<Examined>
  }

  /** Undefined where there is no such attachment, or it takes too long to find. */
  extract(extraction: Extraction): Promise<Uint8Array | undefined> {
    return this.#ask({ extraction }, extraction.raw) as Promise<Uint8Array | undefined>
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(Object.values(this.#threads).map((thread) => thread.end()))
  }

  #ask(order: Order, raw: Uint8Array): Promise<unknown> {
    if (this.#isClosed) throw new Error('the examiners are closed')
    const way = isLong(raw, this.#limits.quickLines) ? 'slow' : 'quick'
    let thread = this.#threads[way]
    if (!thread || thread.isGone) {
      thread = new Thread({ servers: this.#servers, ...this.#limits }, (left) =>
        left.forEach(
          ({ order, ...asker }) => void this.#ask(order, rawOf(order)).then(asker.resolve, asker.reject),
        ),
      )
      this.#threads[way] = thread
    }
    return thread.ask(order)
  }
}

const rawOf = (order: Order): Uint8Array =>
  'examination' in order ? order.examination.raw : order.extraction.raw

function isLong(raw: Uint8Array, lines: number): boolean {
  let count = 0
  for (let at = raw.indexOf(0x0a); at >= 0; at = raw.indexOf(0x0a, at + 1)) if (++count > lines) return true
  return false
}

interface Asker {
  order: Order
  resolve(answer: unknown): void
  reject(error: Error): void
}

type ThreadData = { servers: string[] } & typeof limits

class Thread {
  readonly #worker: Worker
  readonly #limitMs: number
  readonly #silentMs: number
  #silence: NodeJS.Timeout | undefined
  readonly #waiting = new Map<number, Asker>()
  readonly #timers = new Map<number, NodeJS.Timeout>()
  readonly #onEnded: (left: Asker[]) => void
  #last = 0
  isGone = false

  constructor(data: ThreadData, onEnded: (left: Asker[]) => void) {
    this.#limitMs = data.parsedWithinMs
    this.#silentMs = data.silentMs
    this.#onEnded = onEnded
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { role, ...data } })
    this.#worker.on('message', (word: Word) => this.#hear(word))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new Error('the examining thread ended')))
    this.#worker.unref()
  }

  ask(order: Order): Promise<unknown> {
    const no = ++this.#last
    return new Promise((resolve, reject) => {
      // While an answer is awaited the process must not end.
      if (this.#waiting.size === 0) {
        this.#worker.ref()
        this.#silence = setTimeout(() => this.#giveUp(), this.#silentMs)
      }
      this.#waiting.set(no, { order, resolve, reject })
      this.#worker.postMessage({ no, order })
    })
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #hear(word: Word): void {
    const asker = this.#waiting.get(word.no)
    // `node --watch` has threads tell what they import, by the same way.
    if (!asker) return
    this.#silence?.refresh()
    if ('begun' in word) {
      this.#timers.set(
        word.no,
        setTimeout(() => this.#abandon(word.no, word.begun), this.#limitMs),
      )
      return
    }
    this.#forget(word.no)
    if ('fault' in word) asker.reject(new Error(word.fault))
    else asker.resolve(word.answer)
  }

  #forget(no: number): void {
    clearTimeout(this.#timers.get(no))
    this.#timers.delete(no)
    this.#waiting.delete(no)
    if (this.#waiting.size > 0) return
    clearTimeout(this.#silence)
    this.#worker.unref()
  }

  #giveUp(): void {
    this.#fail(new Error('the examining thread hangs'))
    void this.end()
  }

  /** It takes too long, and would keep all others waiting for as long as it takes. */
  #abandon(no: number, known: Examined | undefined): void {
    const asker = this.#waiting.get(no)
    this.#forget(no)
    this.isGone = true
    const left = [...this.#waiting.values()]
    for (const other of this.#waiting.keys()) this.#forget(other)
    void this.end()
    asker?.resolve(known)
    this.#onEnded(left)
  }

  #fail(error: Error): void {
    this.isGone = true
    const left = [...this.#waiting.values()]
    for (const no of this.#waiting.keys()) this.#forget(no)
    for (const { reject } of left) reject(error)
  }
}

/** In the thread. One at a time is read; judging waits for the DNS, and others go on meanwhile. */
async function work(data: ThreadData): Promise<void> {
  const resolver = mailauthResolver(createResolver({ servers: data.servers, ...lookup }))
  const tell = (word: Word) => parentPort?.postMessage(word)
  let reading: Promise<unknown> = Promise.resolve()
  const read = <T>(no: number, known: Examined | undefined, task: () => Promise<T>): Promise<T> => {
    const own = reading.then(() => {
      tell({ no, begun: known })
      return task()
    })
    reading = own.catch(() => {})
    return own
  }
  const examine = async (no: number, { client, name, forwards, isParsed, ...rest }: Examination) => {
    const raw = bufferOf(rest.raw)
    const judged = await judge(raw, client, { resolver, name, withinMs: data.judgedWithinMs })
    const forwarded = await Promise.all(
      forwards.map(({ key, fields }) => sealMime(Buffer.concat([Buffer.from(fields), raw]), key, judged)),
    )
    const known: Examined = { ...judged, forwarded, parsed: null }
    if (!isParsed) return known
    // What is nested too deeply is as good as not read.
    const parsed = await read(no, known, () => parseMail(raw)).catch(() => null)
    return { ...known, parsed }
  }
  const answerTo = (no: number, order: Order) =>
    'examination' in order
      ? examine(no, order.examination)
      : read(no, undefined, () => attachmentIn(bufferOf(order.extraction.raw), order.extraction.attachment))
  parentPort?.on('message', ({ no, order }: { no: number; order: Order }) => {
    void answerTo(no, order).then(
      (answer) => tell({ no, answer }),
      (error: Error) => tell({ no, fault: error.message }),
    )
  })
}

/** Between threads a Buffer becomes what it is underneath. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

if (!isMainThread && workerData?.role === role) void work(workerData as ThreadData)
