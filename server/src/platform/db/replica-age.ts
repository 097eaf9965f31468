import { PosternError } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import type { UnscopedDb } from './db.ts'
import { findHeartbeat, type Heartbeat, writeHeartbeat } from './replica-age.sql.ts'

export { findHeartbeat, writeHeartbeat }

/**
 * The age of a cell's control replica: the time since the replicated heartbeat, which worker/heartbeat.ts
 * writes to the control database. Replication preserves commit order, so the replica has every project lock
 * and key revocation older than this.
 *
 * A timer reads the heartbeat, and callers get the age from memory. Between two reads, and while the cell's server does not
 * respond, the age grows with this process's clock, so it never falls below the true age.
 *
 * The heartbeat is written with the control server's clock, and its age is computed with the cell's clock.
 * If the cell's clock is behind, the replica seems younger than it is. Therefore the age is never less than
 * the time for which this process has been reading the same heartbeat.
 */
export class ReplicaAge {
  readonly #db: UnscopedDb
  readonly #options: ReplicaAgeOptions
  #first: Promise<void> | undefined
  #reading: Reading | undefined
  #timer: NodeJS.Timeout | undefined
  #failure: unknown
  #wasStale = false
  #isClosed = false

  /** `db` is the cell's database. The first call starts the timer. */
  constructor(db: UnscopedDb, options: ReplicaAgeOptions) {
    this.#db = db
    this.#options = options
  }

  /** Waits for the first read only. */
  async isStale(): Promise<boolean> {
    await this.#begin()
    return this.isStaleNow
  }

  /** True until the first read. */
  get isStaleNow(): boolean {
    void this.#begin()
    const { seconds } = this
    return seconds === undefined || seconds > this.#options.maxAgeSeconds
  }

  /** Undefined before the first read, or if the cell has no heartbeat. */
  get seconds(): number | undefined {
    const reading = this.#reading
    if (!reading) return undefined
    const now = performance.now()
    return Math.max(
      reading.heartbeat.age_seconds + (now - reading.readAt) / 1000,
      (now - reading.firstSeenAt) / 1000,
    )
  }

  async requireFresh(): Promise<void> {
    if (!(await this.isStale())) return
    throw new PosternError(
      'unavailable',
      'Mail for this project cannot be accepted at the moment because its database is behind. Try again later.',
      { retryAfterSeconds },
    )
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #begin(): Promise<void> {
    this.#first ??= this.#read()
    return this.#first
  }

  async #read(): Promise<void> {
    // Taken before the query, so that the age includes the round trip.
    const readAt = performance.now()
    try {
      const heartbeat = await this.#db.readOne(findHeartbeat)
      const previous = this.#reading
      const firstSeenAt = previous && previous.heartbeat.at === heartbeat?.at ? previous.firstSeenAt : readAt
      this.#reading = heartbeat && { heartbeat, readAt, firstSeenAt }
      this.#failure = undefined
    } catch (error) {
      // The age continues to grow.
      this.#failure = error
    }
    this.#log()
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#read(), this.#options.readEveryMs ?? usualReadEveryMs).unref()
  }

  /** Logs only changes between stale and fresh. */
  #log(): void {
    const isStale = this.isStaleNow
    if (isStale === this.#wasStale) return
    this.#wasStale = isStale
    const { cell, log, maxAgeSeconds } = this.#options
    const facts = { cell, age_seconds: this.seconds, max_age_seconds: maxAgeSeconds }
    if (isStale)
      log.error(
        { ...facts, ...(this.#failure !== undefined && { err: this.#failure }) },
        'the replica of control is too old: sending from this cell is paused',
      )
    else log.info(facts, 'the replica of control is up to date again')
  }
}

export interface ReplicaAgeOptions {
  cell: string
  maxAgeSeconds: number
  log: Logger
  /** Shorter in tests. */
  readEveryMs?: number
}

interface Reading {
  heartbeat: Heartbeat
  /** According to this process's monotonic clock, like `firstSeenAt`. */
  readAt: number
  /** When this heartbeat was first read. */
  firstSeenAt: number
}

const usualReadEveryMs = 2_000
/** After an interruption, replication catches up within seconds. */
const retryAfterSeconds = 30
