import { PosternError } from '../errors.ts'
import type { Logger } from '../telemetry/log.ts'
import type { UnscopedDb } from './db.ts'
import { findHeartbeat, type Heartbeat, writeHeartbeat } from './replica-age.sql.ts'

export { findHeartbeat, writeHeartbeat }

/**
 * How old a cell's copy of control is: the time since the heartbeat that it has (worker/heartbeat.ts writes it at control).
 * Replication keeps the order of commits, so a lock or a revoked key is missing from the copy for at most this long.
 *
 * A timer reads the heartbeat; whoever asks reads a number in memory. Between two readings, and while the cell's server does
 * not answer, the age grows by this process's own clock, so it is never less than the true age.
 *
 * Two clocks are compared, control's and the cell's. Where the cell's is behind, the copy looks younger than it is; so the
 * age is at least the time for which this process has seen the same heartbeat.
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

  /** `db` is the cell's. Nothing is read before the first question. */
  constructor(db: UnscopedDb, options: ReplicaAgeOptions) {
    this.#db = db
    this.#options = options
  }

  /** Waits for the first reading alone. */
  async isStale(): Promise<boolean> {
    await this.#begin()
    return this.isStaleNow
  }

  /** Stale until it is known not to be. */
  get isStaleNow(): boolean {
    void this.#begin()
    const { seconds } = this
    return seconds === undefined || seconds > this.#options.maxAgeSeconds
  }

  /** Undefined before the first reading, and where the cell has no heartbeat. */
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
      'Mail of this project cannot be accepted at the moment: its database is behind. Try again later.',
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
    // Before the question: the answer is at least that old when it comes.
    const readAt = performance.now()
    try {
      const heartbeat = await this.#db.readOne(findHeartbeat)
      const known = this.#reading
      const firstSeenAt = known && known.heartbeat.at === heartbeat?.at ? known.firstSeenAt : readAt
      this.#reading = heartbeat && { heartbeat, readAt, firstSeenAt }
      this.#failure = undefined
    } catch (error) {
      // The age grows meanwhile.
      this.#failure = error
    }
    this.#log()
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#read(), this.#options.readEveryMs ?? usualReadEveryMs).unref()
  }

  /** Once when it becomes stale, and once when it is fresh again. */
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
  /** By this process's clock, as is the other. */
  readAt: number
  /** When this very heartbeat was first read. */
  firstSeenAt: number
}

const usualReadEveryMs = 2_000
/** A replication that works again catches up in seconds. */
const retryAfterSeconds = 30
