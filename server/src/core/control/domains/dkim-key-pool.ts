import { generateKeyPairSync } from 'node:crypto'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { PosternError } from '../../../platform/errors.ts'

/**
 * Generates DKIM key pairs before any lock is acquired. Generating a pair takes 100 ms of CPU time, or seconds on a busy
 * machine. If a pair were generated while the project's lock is held, every other change to the project would be blocked.
 *
 * A dedicated worker thread generates one pair at a time. crypto.generateKeyPair would occupy libuv's threads, which the
 * rest of the process needs for password hashing, files and DNS. Projects are served round-robin, each with a bounded
 * queue.
 */
export interface DkimKeyPair {
  /** DER in base64, as published in DNS. */
  publicKey: string
  /** PEM. */
  privateKey: string
}

// RFC 8301 §3.2: verifiers must accept RSA keys of 1024 to 4096 bits, and signers should use at least 2048. Many
// receivers do not support Ed25519 (RFC 8463) yet.
const modulusLength = 2048
/**
 * The maximum number of unused pairs kept for later requests. Equal to the maximum number of requests that can wait for
 * one project's transactions.
 */
const keptAtMost = 100

/** A key pair for one request. The request may turn out not to need it. */
export class OfferedKeyPair {
  readonly #pair: DkimKeyPair | undefined
  readonly #refusal: Error
  isUsed = false

  constructor(
    pair?: DkimKeyPair,
    refusal: Error = new Error('an operation that creates a DKIM key must set makesDkimKey'),
  ) {
    this.#pair = pair
    this.#refusal = refusal
  }

  /** Can be called again when the transaction is retried, because the earlier attempt was rolled back. */
  use(): DkimKeyPair {
    if (!this.#pair) throw this.#refusal
    this.isUsed = true
    return this.#pair
  }
}

/** `false`: the operation needs no key. */
export type WantedKeyPair =
  | false
  | {
      projectId: number
      /** The project has reached its daily limit: no pair is generated, and `use` throws this error. */
      refusal?: PosternError | undefined
    }

export interface DkimKeyPoolOptions {
  /** The maximum queue length per project. Further requests are rejected with `rate_limited`. */
  waitingAtMost?: number
  /** The maximum total queue length. Further requests are rejected with `unavailable`. */
  allWaitingAtMost?: number
  /** Timeout per pair. A pair usually takes 0.1 s, or several seconds on a busy machine. */
  withinMs?: number
  /** The worker thread's entry module. Tests replace it. */
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
  /** By project, in round-robin order. */
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

  /** Pairs that were not used, or whose transaction was rolled back because of a limit, are offered to later requests. */
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
    if (this.#count >= this.#options.allWaitingAtMost) throw notMade('too many key requests are waiting')
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
      // Keeps the process alive while a response is pending.
      this.#worker.ref()
      this.#worker.postMessage('make')
    } catch (error) {
      // The worker thread could not be created. The next request tries again.
      this.#fail(String(error))
    }
  }

  #takeTurn(): Waiting | undefined {
    const [first] = this.#waiting
    if (!first) return undefined
    const [projectId, own] = first
    const taken = own.shift()
    // Move the project to the end of the round-robin order.
    this.#waiting.delete(projectId)
    if (own.length > 0) this.#waiting.set(projectId, own)
    return taken
  }

  #start(): Worker {
    const worker = new Worker(this.#options.module, { workerData: role })
    const ifMine = (act: () => void) => {
      if (this.#worker === worker) act()
    }
    worker.on('message', (pair: unknown) => ifMine(() => this.#handleMessage(pair)))
    worker.on('error', (error) => ifMine(() => this.#fail(String(error))))
    worker.on('exit', () => ifMine(() => this.#fail('the thread ended')))
    return worker
  }

  #handleMessage(pair: unknown): void {
    const request = this.#current
    // With `node --watch`, threads also report their imports as messages.
    if (!request || !(pair instanceof Object && 'privateKey' in pair)) return
    this.#current = undefined
    request.resolve(pair as DkimKeyPair)
    this.#next()
  }

  #fail(why: string): void {
    const request = this.#current
    this.#current = undefined
    void this.#worker?.terminate()
    this.#worker = undefined
    request?.reject(notMade(why))
    this.#next()
  }
}

const notMade = (why: string): PosternError =>
  new PosternError('unavailable', 'The DKIM key could not be generated. Retry the request in a moment.', {
    cause: new Error(why),
    retryAfterSeconds: 1,
  })

/** Runs in the worker thread. */
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
