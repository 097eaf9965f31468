import { setTimeout as sleep } from 'node:timers/promises'
import { fromKysely, PgBoss } from 'pg-boss'
import type { Statements, Tx } from '../db/db.ts'
import { type HintListener, Waiter } from '../db/hints.ts'
import { PosternError } from '../errors.ts'
import { Counter, Gauge } from '../telemetry/metrics.ts'
import { findDueQueues } from './due-queues.sql.ts'
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
  /** For the worker. Without hints, the database is polled more often. */
  hints?: HintListener
  /** For tests. */
  idlePollMs?: number
}

const startRetryMs = 1_000

abstract class Boss {
  protected readonly boss: PgBoss
  protected readonly onError: JobsOptions['onError']
  readonly #stopping = new AbortController()
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
      // Postern does not use flows, but pg-boss polls for them.
      flowIntervalSeconds: 3600,
      ...(intervalSeconds === undefined
        ? {}
        : { superviseIntervalSeconds: intervalSeconds, monitorIntervalSeconds: intervalSeconds }),
    })
    this.onError = onError
    this.boss.on('error', (error) => onError(error, 'the job queue failed'))
  }

  protected get stopping(): AbortSignal {
    return this.#stopping.signal
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
        if (String(error) !== lastError) this.onError(error, 'the job queue cannot start; retrying')
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
    tx.hint('jobs')
  }
}

type Handler<Queue extends QueueName> = (payload: Payloads[Queue]) => Promise<void>
export type Handlers = { [Queue in QueueName]: Handler<Queue> }

/** Cron expressions of the queues with periodic jobs. */
export type Schedules = Partial<Record<QueueName, string>>

/** The minimum time between two polls. Without hints, it is the polling interval. */
const pollMs = 1_000
/** Polling interval while no job is due and hints are received. Retries and cron jobs are found by polling. */
const usualIdlePollMs = 5_000
/**
 * Each of pg-boss's workers polls with its own statement, so this interval is long. Instead, one statement finds the
 * queues with due jobs, and only their workers are woken.
 */
const pollingIntervalSeconds = 300
/** Jobs mostly wait for a provider or a DNS server. A sweep handles many items in one job. */
const concurrency = 2

/** For the worker: runs the jobs of all queues. */
export class JobRunner extends Boss {
  readonly #options: JobsOptions
  /** The ids of pg-boss's workers; each runs one job at a time. */
  readonly #workers = new Map<QueueName, string[]>()
  #polling: Promise<void> | undefined

  constructor(options: JobsOptions) {
    super(options, true)
    this.#options = options
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
    for (const [name, handle] of Object.entries(handlers)) {
      const queue = name as QueueName
      const work = handle as (payload: unknown) => Promise<void>
      const ids = Array.from({ length: Object.hasOwn(schedules, queue) ? 1 : concurrency }, () =>
        this.boss.work(queue, { pollingIntervalSeconds }, async ([job]) => {
          if (job) await counted(queue, () => work(job.data))
        }),
      )
      this.#workers.set(queue, await Promise.all(ids))
    }
    this.#polling ??= this.#poll()
  }

  override async stop(graceMs: number): Promise<void> {
    await super.stop(graceMs)
    await this.#polling
  }

  async #poll(): Promise<void> {
    const { db, hints, idlePollMs = usualIdlePollMs } = this.#options
    const waiter = hints?.waiter('jobs') ?? new Waiter()
    while (!this.stopping.aborted) {
      let due: QueueName[] | undefined
      try {
        due = await findDueQueues(db, [...this.#workers.keys()])
      } catch (error) {
        if (!this.stopping.aborted) this.onError(error, 'due jobs cannot be found; retrying')
      }
      for (const id of due?.flatMap((queue) => this.#workers.get(queue) ?? []) ?? [])
        this.boss.notifyWorker(id)
      await sleep(pollMs, undefined, { signal: this.stopping }).catch(() => {})
      if (due?.length === 0 && waiter.isListening) await waiter.wait(idlePollMs - pollMs, this.stopping)
    }
    waiter.close()
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
