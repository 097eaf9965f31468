import { generateKeyPairSync } from 'node:crypto'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { PosternError } from '../../../platform/errors.ts'

/**
 * Pairs of keys for signing, made before anything is locked: one takes a thread 100 ms, on a busy machine seconds, and
 * whoever makes it with a project's lock has everybody else who changes the project wait for it.
 *
 * They are made in a thread of their own, one at a time. Made by crypto.generateKeyPair, they would take the threads of
 * libuv, which everything else of the process needs: password hashing, files, DNS. Projects have turns, and each can have
 * a bounded number waiting.
 */
export interface DkimKeyPair {
  /** DER, in base64, as it stands in DNS. */
  publicKey: string
  /** PEM. */
  privateKey: string
}

// RFC 8301 §3.2: verifiers take RSA keys of 1024 to 4096 bits, and a signer uses at least 2048. Ed25519 (RFC 8463) is
// still unknown to many receivers.
const modulusLength = 2048
/** As many as requests can wait for a project's transactions: what refused requests did not use is not made again. */
const keptAtMost = 100

/** A pair for one request, which may turn out not to need it. */
export class OfferedKeyPair {
  readonly #pair: DkimKeyPair | undefined
  readonly #refusal: Error
  isUsed = false

  constructor(
    pair?: DkimKeyPair,
    refusal: Error = new Error('an operation that makes a DKIM key must say so (makesDkimKey)'),
  ) {
    this.#pair = pair
    this.#refusal = refusal
  }

  /** As often as the request's transaction is run: what an earlier run wrote was rolled back. */
  use(): DkimKeyPair {
    if (!this.#pair) throw this.#refusal
    this.isUsed = true
    return this.#pair
  }
}

/** `false`: none is needed. */
export type WantedKeyPair =
  | false
  | {
      projectId: number
      /** The project has made all that it may: no pair is made, and who needs one is refused with this. */
      refusal?: PosternError | undefined
    }

export interface DkimKeyPoolOptions {
  /** Of one project; one more is refused with `rate_limited`. */
  waitingAtMost?: number
  /** Of all; one more is refused with `unavailable`. */
  allWaitingAtMost?: number
  /** For one pair: 0.1 s as a rule, some seconds on a busy machine. */
  withinMs?: number
  /** The thread's first module. Tests bring their own. */
  module?: URL
}

interface Waiting {
  resolve(pair: DkimKeyPair): void
  reject(error: Error): void
}

const role = 'postern dkim keys'

export class DkimKeyPool {
  readonly #options: Required<DkimKeyPoolOptions>
  readonly #unused: OfferedKeyPair[] = []
  /** By project, in the order of their turns. */
  readonly #waiting = new Map<number, Waiting[]>()
  #count = 0
  #current: Waiting | undefined
  #worker: Worker | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({
    waitingAtMost = 50,
    allWaitingAtMost = 1_000,
    withinMs = 30_000,
    module = new URL(import.meta.url),
  }: DkimKeyPoolOptions = {}) {
    this.#options = { waitingAtMost, allWaitingAtMost, withinMs, module }
  }

  /** What was offered and not used goes to the next one, and so does what a limit refused: that was rolled back. */
  async offer<T>(wanted: WantedKeyPair, work: (offered: OfferedKeyPair) => Promise<T>): Promise<T> {
    if (!wanted) return work(new OfferedKeyPair())
    const { projectId, refusal } = wanted
    if (refusal) return work(new OfferedKeyPair(undefined, refusal))
    const offered = this.#unused.pop() ?? new OfferedKeyPair(await this.#make(projectId))
    try {
      return await work(offered)
    } catch (error) {
      if (error instanceof PosternError && error.code === 'limit_exceeded') offered.isUsed = false
      throw error
    } finally {
      if (!offered.isUsed && this.#unused.length < keptAtMost) this.#unused.push(offered)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const all = [...(this.#current ? [this.#current] : []), ...[...this.#waiting.values()].flat()]
    this.#current = undefined
    this.#waiting.clear()
    for (const { reject } of all) reject(notMade('the process is stopping'))
    await this.#worker?.terminate()
  }

  async #make(projectId: number): Promise<DkimKeyPair> {
    if (this.#isClosed) throw notMade('the process is stopping')
    const own = this.#waiting.get(projectId) ?? []
    if (own.length >= this.#options.waitingAtMost) {
      throw new PosternError(
        'rate_limited',
        `Too many DKIM keys requested at once: ${own.length} are waiting for this project. Send fewer requests at a time.`,
        { retryAfterSeconds: 1 },
      )
    }
    if (this.#count >= this.#options.allWaitingAtMost) throw notMade('too many keys are waiting')
    this.#count++
    return new Promise<DkimKeyPair>((resolve, reject) => {
      own.push({ resolve, reject })
      this.#waiting.set(projectId, own)
      this.#next()
    }).finally(() => void this.#count--)
  }

  #next(): void {
    if (this.#current || this.#isClosed) return
    clearTimeout(this.#timer)
    this.#current = this.#takeTurn()
    if (!this.#current) return void this.#worker?.unref()
    const { withinMs } = this.#options
    this.#timer = setTimeout(() => this.#fail(`a key took more than ${withinMs} ms`), withinMs)
    try {
      this.#worker ??= this.#start()
      // While an answer is awaited the process must not end.
      this.#worker.ref()
      this.#worker.postMessage('make')
    } catch (error) {
      // The machine gives us no more threads: the next one may be luckier.
      this.#fail(String(error))
    }
  }

  #takeTurn(): Waiting | undefined {
    const [first] = this.#waiting
    if (!first) return undefined
    const [projectId, own] = first
    const taken = own.shift()
    // Behind the others: it had its turn.
    this.#waiting.delete(projectId)
    if (own.length > 0) this.#waiting.set(projectId, own)
    return taken
  }

  #start(): Worker {
    const worker = new Worker(this.#options.module, { workerData: role })
    const ifMine = (act: () => void) => {
      if (this.#worker === worker) act()
    }
    worker.on('message', (pair: unknown) => ifMine(() => this.#hear(pair)))
    worker.on('error', (error) => ifMine(() => this.#fail(String(error))))
    worker.on('exit', () => ifMine(() => this.#fail('the thread ended')))
    return worker
  }

  #hear(pair: unknown): void {
    const asker = this.#current
    // `node --watch` has threads tell what they import, by the same way.
    if (!asker || !(pair instanceof Object && 'privateKey' in pair)) return
    this.#current = undefined
    asker.resolve(pair as DkimKeyPair)
    this.#next()
  }

  #fail(why: string): void {
    const asker = this.#current
    this.#current = undefined
    void this.#worker?.terminate()
    this.#worker = undefined
    asker?.reject(notMade(why))
    this.#next()
  }
}

const notMade = (why: string): PosternError =>
  new PosternError('unavailable', 'The DKIM key could not be generated. Retry the request in a moment.', {
    cause: new Error(why),
    retryAfterSeconds: 1,
  })

/** In the thread, which does nothing else meanwhile. */
function makePair(): DkimKeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey: publicKey.toString('base64'), privateKey }
}

if (!isMainThread && workerData === role) {
  parentPort?.on('message', () => parentPort?.postMessage(makePair()))
}
