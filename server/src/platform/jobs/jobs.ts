import { setTimeout as sleep } from 'node:timers/promises'
import { fromKysely, PgBoss } from 'pg-boss'
import type { Statements, Tx } from '../db/db.ts'
import { PosternError } from '../errors.ts'
import { metrics } from '../telemetry/metrics.ts'
import { jobsSchema, type Payloads, type QueueName } from './queues.ts'

/**
 * Jobs, kept by pg-boss in the same database, so that one is enqueued by the transaction that makes it necessary:
 * both happen or neither does.
 */
export interface JobsOptions {
  db: Statements
  onError: (error: unknown, what: string) => void
  /** Shorter in tests that wait for it. */
  intervalSeconds?: number
}

const startRetryMs = 1_000

abstract class Boss {
  protected readonly boss: PgBoss
  readonly #stopping = new AbortController()
  readonly #onError: JobsOptions['onError']
  #started: Promise<void> | undefined
  /** Whether jobs can be sent. */
  isReady = false

  constructor({ db, onError, intervalSeconds }: JobsOptions, isWorker: boolean) {
    const { executeSql } = db
    this.boss = new PgBoss({
      db: { executeSql },
      schema: jobsSchema,
      // `postern migrate` does it, as the owner.
      migrate: false,
      createSchema: false,
      supervise: isWorker,
      schedule: isWorker,
      // Needs the owner.
      reindex: false,
      ...(intervalSeconds === undefined
        ? {}
        : { superviseIntervalSeconds: intervalSeconds, monitorIntervalSeconds: intervalSeconds }),
    })
    this.#onError = onError
    this.boss.on('error', (error) => onError(error, 'the job queue failed'))
  }

  /** The database may not be there yet when a process starts: tried again until it is. */
  start(): Promise<void> {
    this.#started ??= this.#untilStarted()
    return this.#started
  }

  async #untilStarted(): Promise<void> {
    const { signal } = this.#stopping
    let told = ''
    while (!signal.aborted) {
      try {
        await this.boss.start()
        this.isReady = true
        return
      } catch (error) {
        // Once for each reason, not once a second.
        if (String(error) !== told) this.#onError(error, 'the job queue cannot start; retrying')
        told = String(error)
        await this.boss.stop({ graceful: false }).catch(() => {})
        await sleep(startRetryMs, undefined, { signal }).catch(() => {})
      }
    }
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    await this.#started
    await this.boss.stop({ graceful: true, timeout: graceMs })
  }
}

/** For whoever only asks for work to be done. */
export class JobSender extends Boss {
  constructor(options: JobsOptions) {
    super(options, false)
  }

  async send<Queue extends QueueName>(tx: Tx, queue: Queue, payload: Payloads[Queue]): Promise<void> {
    if (!this.isReady) {
      throw new PosternError('unavailable', 'The job queue is not ready yet. Try again in a moment.')
    }
    await this.boss.send(queue, payload, { db: fromKysely(tx) })
  }
}

type Handler<Queue extends QueueName> = (payload: Payloads[Queue]) => Promise<void>
export type Handlers = { [Queue in QueueName]: Handler<Queue> }

/** When a queue has a job by itself, in cron's notation. */
export type Schedules = Partial<Record<QueueName, string>>

const pollingIntervalSeconds = 1
/** Each waits for a provider or a DNS server most of the time; a sweep works through many by itself. */
const localConcurrency = 2

/** For the worker: runs every queue. */
export class JobRunner extends Boss {
  constructor(options: JobsOptions) {
    super(options, true)
  }

  /** May be called again if it failed: what needs the database comes before the first handler is at work. */
  async run(handlers: Handlers, schedules: Schedules): Promise<void> {
    await this.start()
    if (!this.isReady) return
    for (const [queue, cron] of Object.entries(schedules)) {
      await this.boss.schedule(queue, cron)
      // Whatever fell due while nobody was there need not wait for its time.
      await this.boss.send(queue, {})
    }
    for (const queue of Object.keys(schedules)) noteDone(queue as QueueName)
    for (const [queue, handle] of Object.entries(handlers)) {
      const work = handle as (payload: unknown) => Promise<void>
      const isSweep = Object.hasOwn(schedules, queue)
      const options = isSweep ? { pollingIntervalSeconds: 2 } : { pollingIntervalSeconds, localConcurrency }
      await this.boss.work(queue, options, async ([job]) => {
        if (job) await counted(queue as QueueName, () => work(job.data))
      })
    }
  }
}

async function counted(queue: QueueName, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    metrics.jobs.add({ queue, outcome: 'failed' })
    throw error
  }
  metrics.jobs.add({ queue, outcome: 'done' })
  noteDone(queue)
}

const noteDone = (queue: QueueName): void => metrics.jobLastDone.set({ queue }, Date.now() / 1000)
