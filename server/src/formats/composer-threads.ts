import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Composition, composeMime } from './compose.ts'
import type { Content } from './content.ts'
import { type DkimKey, signMime } from './sign.ts'
import { completeMime } from './submitted.ts'

/** A message to compose, or to complete if it was submitted over SMTP, and to sign if there is a key. */
export interface ComposeTask {
  content: Content | { mime: Uint8Array }
  composition: Composition
  key: DkimKey | null
}

export async function makeMime({ content, composition, key }: ComposeTask): Promise<Buffer> {
  const mime =
    'mime' in content
      ? completeMime(bufferOf(content.mime), composition)
      : await composeMime(content, composition)
  return key === null ? mime : signMime(mime, key)
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

type ThreadResult = { no: number; mime: Uint8Array } | { no: number; fault: string }

const role = 'postern composer'

/**
 * Worker threads that compose and sign mail, because this work would otherwise block the event loop: a 7 KB
 * message takes about 2 ms of CPU time, mostly for RSA. With 0 threads, the calling thread does the work.
 *
 * The caller limits the number of concurrent tasks.
 */
export class ComposerThreads {
  readonly #threads: (Thread | undefined)[]
  #isClosed = false

  constructor({ threads }: { threads: number }) {
    this.#threads = Array.from({ length: threads })
  }

  async make(task: ComposeTask): Promise<Buffer> {
    if (this.#isClosed) throw new Error('the composer threads are closed')
    if (this.#threads.length === 0) return makeMime(task)
    return this.#leastBusy().make(task)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread?.end()))
  }

  /** A thread that has exited is replaced when it is next chosen. */
  #leastBusy(): Thread {
    let least: number | undefined
    for (const [at, thread] of this.#threads.entries()) {
      if (!thread || thread.hasEnded) {
        this.#threads[at] = new Thread()
        return this.#threads[at]
      }
      if (least === undefined || thread.load < (this.#threads[least]?.load ?? 0)) least = at
    }
    return this.#threads[least ?? 0] as Thread
  }
}

class Thread {
  readonly #worker = new Worker(new URL(import.meta.url), { workerData: role })
  readonly #pending = new Map<number, { resolve(mime: Buffer): void; reject(error: Error): void }>()
  #last = 0
  hasEnded = false

  constructor() {
    this.#worker.on('message', (result: ThreadResult) => this.#onResult(result))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new Error('the composer thread ended')))
    this.#worker.unref()
  }

  get load(): number {
    return this.#pending.size
  }

  make(task: ComposeTask): Promise<Buffer> {
    const no = ++this.#last
    return new Promise((resolve, reject) => {
      // The process must not exit while a result is pending.
      if (this.#pending.size === 0) this.#worker.ref()
      this.#pending.set(no, { resolve, reject })
      this.#worker.postMessage({ no, task })
    })
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #onResult(result: ThreadResult): void {
    const pending = this.#pending.get(result.no)
    // `node --watch` sends messages about imports on the same channel.
    if (!pending) return
    this.#pending.delete(result.no)
    if (this.#pending.size === 0) this.#worker.unref()
    if ('fault' in result) {
      pending.reject(new Error(result.fault))
    } else {
      pending.resolve(bufferOf(result.mime))
    }
  }

  #fail(error: Error): void {
    this.hasEnded = true
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}

async function run(no: number, task: ComposeTask): Promise<void> {
  try {
    const mime = await makeMime(task)
    parentPort?.postMessage({ no, mime } satisfies ThreadResult)
  } catch (error) {
    parentPort?.postMessage({ no, fault: (error as Error).message } satisfies ThreadResult)
  }
}

if (!isMainThread && workerData === role) {
  parentPort?.on('message', ({ no, task }: { no: number; task: ComposeTask }) => void run(no, task))
}
