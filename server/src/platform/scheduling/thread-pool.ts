import { parentPort, type Worker } from 'node:worker_threads'
import { PosternError } from '../errors.ts'
import type { CpuBudget } from './cpu-budget.ts'
import { FairQueue, type Whose } from './fair-queue.ts'

/** A job took longer than it may, and its thread was ended with it. */
export class TookTooLong extends Error {}

export interface ThreadPoolOptions {
  start: () => Worker
  threads: number
  /** Jobs in one thread at the same time. */
  atOnce: number
  /** Of one network or one addressee, in all threads. */
  atOncePerShare: number
  /** How long one job may run. Only where a thread has one job at a time. */
  withinMs?: number
  /** How long a job waits for its turn. */
  waitMs: number
  /** Threads that have jobs and report nothing for so long are ended. */
  silentMs: number
  budget: CpuBudget
  /** What a job takes at most is little (cpu-budget.ts). */
  jobs: 'small' | 'any'
}

interface Job<Order> {
  whose: Whose
  order: Order
  timer: NodeJS.Timeout | undefined
  resolve(answer: unknown): void
  reject(error: Error): void
}

/** What a thread reports. `begun`: the job's time starts to count. */
type Word = { no: number } & (
  | { begun: true }
  | { answer: unknown; cpuMs: number }
  | { fault: string; cpuMs: number }
)

/**
 * Threads that take jobs in fair order (fair-queue.ts). The thread measures the processor time of each job, which is charged
 * to its network and its addressee (cpu-budget.ts); jobs of one that has used up its budget are refused with
 * `rate_limited`, as are jobs that wait too long. Threads start with the first job.
 */
export class ThreadPool<Order> {
  readonly #options: ThreadPoolOptions
  readonly #queue: FairQueue<Job<Order>>
  #threads: Thread<Order>[] = []
  #isClosed = false

  constructor(options: ThreadPoolOptions) {
    this.#options = options
    this.#queue = new FairQueue({ atOnce: options.atOncePerShare })
  }

  run(order: Order, whose: Whose): Promise<unknown> {
    if (this.#isClosed) throw new Error('the threads are closed')
    return new Promise((resolve, reject) => {
      const job: Job<Order> = { whose, order, timer: undefined, resolve, reject }
      job.timer = setTimeout(() => {
        this.#queue.remove(job)
        reject(refused('Too many messages are waiting for analysis. Try again later.'))
      }, this.#options.waitMs)
      this.#queue.add(job)
      this.#next()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { timer, reject } of this.#queue.removeAll()) {
      clearTimeout(timer)
      reject(new Error('the threads are closed'))
    }
    await Promise.all(this.#threads.map((thread) => thread.end()))
  }

  #next(): void {
    while (!this.#isClosed) {
      const thread = this.#idle()
      const job = thread && this.#queue.take()
      if (!job) return
      clearTimeout(job.timer)
      if (this.#options.budget.isSpent(job.whose, this.#options.jobs)) {
        this.#queue.end(job)
        job.reject(overspent())
        continue
      }
      try {
        this.#start(thread, job)
      } catch (error) {
        // The machine gives us no more threads.
        this.#queue.end(job)
        job.reject(error as Error)
      }
    }
  }

  /** Undefined: all threads are busy. */
  #idle(): Thread<Order> | 'new' | undefined {
    this.#threads = this.#threads.filter(({ isGone }) => !isGone)
    const idle = this.#threads.find(({ load }) => load < this.#options.atOnce)
    return idle ?? (this.#threads.length < this.#options.threads ? 'new' : undefined)
  }

  #start(found: Thread<Order> | 'new', job: Job<Order>): void {
    const thread = found === 'new' ? new Thread<Order>(this.#options) : found
    if (found === 'new') this.#threads.push(thread)
    const over = (cpuMs: number, settle: () => void) => {
      this.#options.budget.charge(job.whose, cpuMs)
      this.#queue.end(job)
      settle()
      this.#next()
    }
    thread.run(job.order, {
      onAnswer: (answer, cpuMs) => over(cpuMs, () => job.resolve(answer)),
      onFault: (error, cpuMs) => over(cpuMs, () => job.reject(error)),
    })
  }
}

export const overspent = (): PosternError =>
  refused('The CPU budget for this network or recipient is exhausted. Try again later.')

const refused = (why: string): PosternError =>
  new PosternError('rate_limited', why, { retryAfterSeconds: 60 })

interface Asker {
  onAnswer(answer: unknown, cpuMs: number): void
  onFault(error: Error, cpuMs: number): void
}

class Thread<Order> {
  readonly #worker: Worker
  readonly #options: ThreadPoolOptions
  readonly #waiting = new Map<number, Asker>()
  #silence: NodeJS.Timeout | undefined
  #limit: NodeJS.Timeout | undefined
  #begunAt = 0
  #last = 0
  isGone = false

  constructor(options: ThreadPoolOptions) {
    this.#options = options
    this.#worker = options.start()
    this.#worker.on('message', (word: Word) => this.#hear(word))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new Error('the analysis thread exited')))
    this.#worker.unref()
  }

  get load(): number {
    return this.#waiting.size
  }

  run(order: Order, asker: Asker): void {
    const no = ++this.#last
    // While an answer is awaited the process must not end.
    if (this.#waiting.size === 0) {
      this.#worker.ref()
      this.#silence = setTimeout(() => this.#giveUp(), this.#options.silentMs)
    }
    this.#waiting.set(no, asker)
    this.#worker.postMessage({ no, order })
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
      this.#begunAt = performance.now()
      if (this.#options.withinMs !== undefined) {
        this.#limit = setTimeout(() => this.#tookTooLong(), this.#options.withinMs)
      }
      return
    }
    this.#forget(word.no)
    if ('fault' in word) asker.onFault(new Error(word.fault), word.cpuMs)
    else asker.onAnswer(word.answer, word.cpuMs)
  }

  #forget(no: number): void {
    clearTimeout(this.#limit)
    this.#waiting.delete(no)
    if (this.#waiting.size > 0) return
    clearTimeout(this.#silence)
    this.#worker.unref()
  }

  /** The time that it ran is charged as processor time: a thread that was ended tells nothing. */
  #tookTooLong(): void {
    this.#fail(new TookTooLong('the job took too long'), performance.now() - this.#begunAt)
    void this.end()
  }

  /** No one can say because of which job. All of them fail, and are asked for again by their senders. */
  #giveUp(): void {
    this.#fail(new Error('the analysis thread hangs'))
    void this.end()
  }

  #fail(error: Error, cpuMs = 0): void {
    this.isGone = true
    const left = [...this.#waiting.entries()]
    for (const [no] of left) this.#forget(no)
    for (const [, asker] of left) asker.onFault(error, cpuMs)
  }
}

export interface Answered {
  answer: unknown
  /** What is given away to the other thread instead of being copied. */
  transfer?: ArrayBuffer[]
}

/**
 * In the thread. Jobs may wait for the network; others run meanwhile. So that each is charged for its own processor time,
 * `resume` is called where a job goes on after it has waited.
 */
export function serveJobs<Order>(handle: (order: Order, resume: () => void) => Promise<Answered>): void {
  const meter = new Meter()
  parentPort?.on('message', async ({ no, order }: { no: number; order: Order }) => {
    const resume = () => meter.switchTo(no)
    meter.begin(no)
    parentPort?.postMessage({ no, begun: true } satisfies Word)
    try {
      const { answer, transfer } = await handle(order, resume)
      parentPort?.postMessage({ no, answer, cpuMs: meter.end(no) } satisfies Word, transfer ?? [])
    } catch (error) {
      parentPort?.postMessage({ no, fault: (error as Error).message, cpuMs: meter.end(no) } satisfies Word)
    }
  })
}

/** Processor time of this thread, by job. */
class Meter {
  #current: number | undefined
  #readAt = threadCpuMs()
  readonly #spent = new Map<number, number>()

  begin(no: number): void {
    this.#spent.set(no, 0)
    this.switchTo(no)
  }

  switchTo(no: number | undefined): void {
    const now = threadCpuMs()
    const spent = this.#current === undefined ? undefined : this.#spent.get(this.#current)
    // A job may go on after it was answered: its answer from the DNS came too late.
    if (this.#current !== undefined && spent !== undefined) {
      this.#spent.set(this.#current, spent + now - this.#readAt)
    }
    this.#readAt = now
    this.#current = no
  }

  end(no: number): number {
    this.switchTo(undefined)
    const spent = this.#spent.get(no) ?? 0
    this.#spent.delete(no)
    return spent
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
