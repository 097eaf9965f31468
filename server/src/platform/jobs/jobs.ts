import { setTimeout as sleep } from 'node:timers/promises'
import { fromKysely, PgBoss } from 'pg-boss'
import type { Statements, Tx } from '../db/db.ts'
import { PosternError } from '../errors.ts'
import { Counter, Gauge } from '../telemetry/metrics.ts'
import { jobsSchema, type Payloads, type QueueName, queues } from './queues.ts'

const queueNames = Object.keys(queues) as QueueName[]
const jobCount = new Counter('postern_jobs_total', 'Jobs run by this worker, by queue and outcome.', {
  queue: queueNames,
  outcome: ['done', 'failed'],
})
const lastSuccess = new Gauge(
  'postern_job_last_success_timestamp_seconds',
  'Time of the last successful job in the queue on this worker; initially the start time of the worker.',
  { queue: queueNames },
)

/**
 * Job queues based on pg-boss. They are in the same database, so a job is enqueued atomically with the change that needs
 * it.
 */
export interface JobsOptions {
  db: Statements
  onError: (error: unknown, what: string) => void
  /** Maintenance interval of pg-boss; shorter in tests. */
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
      // `postern migrate` creates the schema as the owner.
      migrate: false,
      createSchema: false,
      supervise: isWorker,
      schedule: isWorker,
      // Requires the owner role.
      reindex: false,
      ...(intervalSeconds === undefined
        ? {}
        : { superviseIntervalSeconds: intervalSeconds, monitorIntervalSeconds: intervalSeconds }),
    })
    this.#onError = onError
    this.boss.on('error', (error) => onError(error, 'the job queue failed'))
  }

  /** Retries until the database is available. */
  start(): Promise<void> {
    this.#started ??= this.#untilStarted()
    return this.#started
  }

  async #untilStarted(): Promise<void> {
    const { signal } = this.#stopping
    let lastError = ''
    while (!signal.aborted) {
      try {
        await this.boss.start()
        this.isReady = true
        return
      } catch (error) {
        // Reports an error once, not on every retry.
        if (String(error) !== lastError) this.#onError(error, 'the job queue cannot start; retrying')
        lastError = String(error)
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

/** For processes that only enqueue jobs. */
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

/** Cron expressions of the queues with periodic jobs. */
export type Schedules = Partial<Record<QueueName, string>>

const pollingIntervalSeconds = 1
/** Jobs mostly wait for a provider or a DNS server. A sweep handles many items in one job. */
const localConcurrency = 2

/** For the worker: runs the jobs of all queues. */
export class JobRunner extends Boss {
  constructor(options: JobsOptions) {
    super(options, true)
  }

  /** Can be called again after a failure: all database calls precede the first handler. */
  async run(handlers: Handlers, schedules: Schedules): Promise<void> {
    await this.start()
    if (!this.isReady) return
    for (const [queue, cron] of Object.entries(schedules)) {
      await this.boss.schedule(queue, cron)
      // Runs once immediately, for work that became due while no worker was running.
      await this.boss.send(queue, {})
    }
    for (const queue of Object.keys(schedules)) recordSuccess(queue as QueueName)
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
    jobCount.add({ queue, outcome: 'failed' })
    throw error
  }
  jobCount.add({ queue, outcome: 'done' })
  recordSuccess(queue)
}

const recordSuccess = (queue: QueueName): void => lastSuccess.set({ queue }, Date.now() / 1000)
