import { parentPort, type Worker } from 'node:worker_threads'
import { PosternError } from '../errors.ts'
import type { CpuBudget } from './cpu-budget.ts'
import { FairQueue, type Whose } from './fair-queue.ts'

/** A job exceeded its time limit and its thread was terminated. */
export class TookTooLong extends Error {}

export interface ThreadPoolOptions {
  start: () => Worker
  threads: number
  /** Concurrent jobs per thread. */
  atOnce: number
  /** Concurrent jobs per network and per addressee, across all threads. */
  atOncePerShare: number
  /** Time limit for a job. Requires `atOnce: 1`. */
  withinMs?: number
  /** How long a job waits in the queue before it fails. */
  waitMs: number
  /** A thread with jobs that reports nothing for this long is terminated. */
  silentMs: number
  budget: CpuBudget
  /** `small` if every job takes little CPU time (cpu-budget.ts). */
  jobs: 'small' | 'any'
}

interface Job<Task> {
  whose: Whose
  task: Task
  timer: NodeJS.Timeout | undefined
  resolve(answer: unknown): void
  reject(error: Error): void
}

/** A message from a thread. `begun` starts the job's time limit. */
type Report = { id: number } & (
  | { begun: true }
  | { answer: unknown; cpuMs: number }
  | { fault: string; cpuMs: number }
)

/**
 * Runs jobs in worker threads, in fair order (fair-queue.ts). Each thread measures the CPU time of its jobs, which is
 * charged to the network and the addressee (cpu-budget.ts). Jobs over budget, and jobs that wait too long, fail with
 * `rate_limited`. Threads start on demand.
 */
export class ThreadPool<Task> {
  readonly #options: ThreadPoolOptions
  readonly #queue: FairQueue<Job<Task>>
  #threads: Thread<Task>[] = []
  #isClosed = false

  constructor(options: ThreadPoolOptions) {
    this.#options = options
    this.#queue = new FairQueue({ atOnce: options.atOncePerShare })
  }

  run(task: Task, whose: Whose): Promise<unknown> {
    if (this.#isClosed) throw new Error('the thread pool is closed')
    return new Promise((resolve, reject) => {
      const job: Job<Task> = { whose, task, timer: undefined, resolve, reject }
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
      reject(new Error('the thread pool is closed'))
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
        // The system cannot start more threads.
        this.#queue.end(job)
        job.reject(error as Error)
      }
    }
  }

  /** Undefined if all threads are busy. */
  #idle(): Thread<Task> | 'new' | undefined {
    this.#threads = this.#threads.filter(({ isGone }) => !isGone)
    const idle = this.#threads.find(({ load }) => load < this.#options.atOnce)
    return idle ?? (this.#threads.length < this.#options.threads ? 'new' : undefined)
  }

  #start(found: Thread<Task> | 'new', job: Job<Task>): void {
    const thread = found === 'new' ? new Thread<Task>(this.#options) : found
    if (found === 'new') this.#threads.push(thread)
    const over = (cpuMs: number, settle: () => void) => {
      this.#options.budget.charge(job.whose, cpuMs)
      this.#queue.end(job)
      settle()
      this.#next()
    }
    thread.run(job.task, {
      onAnswer: (answer, cpuMs) => over(cpuMs, () => job.resolve(answer)),
      onFault: (error, cpuMs) => over(cpuMs, () => job.reject(error)),
    })
  }
}

export const overspent = (): PosternError =>
  refused('The CPU budget for this network or recipient is exhausted. Try again later.')

const refused = (why: string): PosternError =>
  new PosternError('rate_limited', why, { retryAfterSeconds: 60 })

interface Callbacks {
  onAnswer(answer: unknown, cpuMs: number): void
  onFault(error: Error, cpuMs: number): void
}

class Thread<Task> {
  readonly #worker: Worker
  readonly #options: ThreadPoolOptions
  readonly #waiting = new Map<number, Callbacks>()
  #silence: NodeJS.Timeout | undefined
  #limit: NodeJS.Timeout | undefined
  #begunAt = 0
  #last = 0
  isGone = false

  constructor(options: ThreadPoolOptions) {
    this.#options = options
    this.#worker = options.start()
    this.#worker.on('message', (report: Report) => this.#handle(report))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#fail(new Error('the analysis thread exited')))
    this.#worker.unref()
  }

  get load(): number {
    return this.#waiting.size
  }

  run(task: Task, callbacks: Callbacks): void {
    const id = ++this.#last
    // The process must not exit while a job is running.
    if (this.#waiting.size === 0) {
      this.#worker.ref()
      this.#silence = setTimeout(() => this.#giveUp(), this.#options.silentMs)
    }
    this.#waiting.set(id, callbacks)
    this.#worker.postMessage({ id, task })
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #handle(report: Report): void {
    const callbacks = this.#waiting.get(report.id)
    // `node --watch` makes threads report their imports over the same channel.
    if (!callbacks) return
    this.#silence?.refresh()
    if ('begun' in report) {
      this.#begunAt = performance.now()
      if (this.#options.withinMs !== undefined) {
        this.#limit = setTimeout(() => this.#tookTooLong(), this.#options.withinMs)
      }
      return
    }
    this.#forget(report.id)
    if ('fault' in report) callbacks.onFault(new Error(report.fault), report.cpuMs)
    else callbacks.onAnswer(report.answer, report.cpuMs)
  }

  #forget(id: number): void {
    clearTimeout(this.#limit)
    this.#waiting.delete(id)
    if (this.#waiting.size > 0) return
    clearTimeout(this.#silence)
    this.#worker.unref()
  }

  /** Charges the elapsed time as CPU time, because a terminated thread reports no CPU time. */
  #tookTooLong(): void {
    this.#fail(new TookTooLong('the job took too long'), performance.now() - this.#begunAt)
    void this.end()
  }

  /** It is unknown which job blocks the thread, so all its jobs fail. Senders retry them. */
  #giveUp(): void {
    this.#fail(new Error('the analysis thread does not respond'))
    void this.end()
  }

  #fail(error: Error, cpuMs = 0): void {
    this.isGone = true
    const left = [...this.#waiting.entries()]
    for (const [id] of left) this.#forget(id)
    for (const [, callbacks] of left) callbacks.onFault(error, cpuMs)
  }
}

export interface Answered {
  answer: unknown
  /** Buffers to transfer to the other thread instead of copying them. */
  transfer?: ArrayBuffer[]
}

/**
 * Runs in the thread. While a job waits for the network, other jobs run. A job must call `resume` after each wait, so that
 * CPU time is charged to the right job.
 */
export function serveJobs<Task>(handle: (task: Task, resume: () => void) => Promise<Answered>): void {
  const meter = new Meter()
  parentPort?.on('message', async ({ id, task }: { id: number; task: Task }) => {
    const resume = () => meter.switchTo(id)
    meter.begin(id)
    parentPort?.postMessage({ id, begun: true } satisfies Report)
    try {
      const { answer, transfer } = await handle(task, resume)
      parentPort?.postMessage({ id, answer, cpuMs: meter.end(id) } satisfies Report, transfer ?? [])
    } catch (error) {
      parentPort?.postMessage({ id, fault: (error as Error).message, cpuMs: meter.end(id) } satisfies Report)
    }
  })
}

/** CPU time of this thread, by job. */
class Meter {
  #current: number | undefined
  #readAt = threadCpuMs()
  readonly #spent = new Map<number, number>()

  begin(id: number): void {
    this.#spent.set(id, 0)
    this.switchTo(id)
  }

  switchTo(id: number | undefined): void {
    const now = threadCpuMs()
    const spent = this.#current === undefined ? undefined : this.#spent.get(this.#current)
    // A job can continue after its result was sent, for example when a DNS response arrives late.
    if (this.#current !== undefined && spent !== undefined) {
      this.#spent.set(this.#current, spent + now - this.#readAt)
    }
    this.#readAt = now
    this.#current = id
  }

  end(id: number): number {
    this.switchTo(undefined)
    const spent = this.#spent.get(id) ?? 0
    this.#spent.delete(id)
    return spent
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
