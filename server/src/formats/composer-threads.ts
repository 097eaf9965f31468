import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Composition, composeMime } from './compose.ts'
import type { Content } from './content.ts'
import { type DkimKey, signMime } from './sign.ts'
import { completeMime } from './submitted.ts'

/** A mail to compose, or to complete where it was submitted as a whole, and, with a key, to sign. */
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

/** Between threads a Buffer becomes what it is underneath. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

type Answer = { no: number; mime: Uint8Array } | { no: number; fault: string }

const role = 'postern composer'

/**
 * Threads that compose and sign, so that whoever speaks with databases and MTAs is not held up by it: it is about
 * 2 ms of a core for a mail of 7 KB, most of it for RSA. With no thread it is done where it is asked for.
 *
 * How much is asked for at once is the caller's to limit.
 */
export class ComposerThreads {
  readonly #threads: (Thread | undefined)[]
  #isClosed = false

  constructor({ threads }: { threads: number }) {
    this.#threads = Array.from({ length: threads })
  }

  async make(order: ComposeTask): Promise<Buffer> {
    if (this.#isClosed) throw new Error('the composers are closed')
    if (this.#threads.length === 0) return makeMime(order)
    return this.#leastBusy().make(order)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread?.end()))
  }

  /** A thread that died is replaced when its turn comes. */
  #leastBusy(): Thread {
    let least: number | undefined
    for (const [at, thread] of this.#threads.entries()) {
      if (!thread || thread.isGone) {
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
  readonly #waiting = new Map<number, { resolve(mime: Buffer): void; reject(error: Error): void }>()
  #last = 0
  isGone = false

  constructor() {
    this.#worker.on('message', (answer: Answer) => this.#hear(answer))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new Error('the composing thread ended')))
    this.#worker.unref()
  }

  get load(): number {
    return this.#waiting.size
  }

  make(order: ComposeTask): Promise<Buffer> {
    const no = ++this.#last
    return new Promise((resolve, reject) => {
      // While an answer is awaited the process must not end.
      if (this.#waiting.size === 0) this.#worker.ref()
      this.#waiting.set(no, { resolve, reject })
      this.#worker.postMessage({ no, order })
    })
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #hear(answer: Answer): void {
    const asker = this.#waiting.get(answer.no)
    // `node --watch` has threads tell what they import, by the same way.
    if (!asker) return
    this.#waiting.delete(answer.no)
    if (this.#waiting.size === 0) this.#worker.unref()
    if ('fault' in answer) {
      asker.reject(new Error(answer.fault))
    } else {
      asker.resolve(bufferOf(answer.mime))
    }
  }

  #fail(error: Error): void {
    this.isGone = true
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

async function answer(no: number, order: ComposeTask): Promise<void> {
  try {
    const mime = await makeMime(order)
    parentPort?.postMessage({ no, mime } satisfies Answer)
  } catch (error) {
    parentPort?.postMessage({ no, fault: (error as Error).message } satisfies Answer)
  }
}

if (!isMainThread && workerData === role) {
  parentPort?.on('message', ({ no, order }: { no: number; order: ComposeTask }) => void answer(no, order))
}
