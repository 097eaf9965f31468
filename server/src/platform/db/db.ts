import { setTimeout as sleep } from 'node:timers/promises'
import { type ControlledTransaction, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { KeyedSemaphore } from '../scheduling/keyed-semaphore.ts'
import { metrics } from '../telemetry/metrics.ts'
import { commitFailure, isRetryable, isTimedOut, translateFailure, unavailable } from './failures.ts'
import { pgTypes } from './pg-types.ts'
import { type DbRole, roleName } from './roles.ts'
import type { DB as Schema } from './schema.gen.ts'

export type { Schema }

declare const access: unique symbol

/** A transaction that can only read. Every query of the application runs in one of the two. */
export interface ReadTx extends Transaction<Schema> {
  readonly [access]: 'read' | 'write'
}

/** A transaction that can write. What takes a `Tx` cannot be called outside of one. */
export interface Tx extends ReadTx {
  readonly [access]: 'write'
  /**
   * Does something once the transaction has committed, and only then. The caller has been promised success
   * by that time, so a failure in here is logged, never thrown: what must not be lost is a row, not an effect.
   */
  onCommit(effect: Effect): void
}

/**
 * A plane's way to the database. It has no query methods of its own, so there is no query outside of a
 * transaction, and it is no `Tx`, so it cannot be passed where one is asked for.
 */
export interface Db {
  /** Commits when `work` returns, rolls back when it throws; run again on a deadlock or serialisation failure. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** The same work, undone at its end: what would have happened, without its happening. */
  dryRun<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T>
}

/** Of a role that sees every project: what is true without a transaction that names one. */
export interface UnscopedDb extends Db {
  /**
   * One statement that reads. It is a transaction by itself, so there is no BEGIN and COMMIT around it, which would
   * make three round trips of one; what needs two statements needs `read`.
   */
  readOne<T>(query: (tx: ReadTx) => Promise<T>): Promise<T>
}

/**
 * The customer plane's: a project must be named before there is anything to query. A project has two transactions at
 * once; others of it wait before they take a connection, so that one project never has them all.
 */
export interface CustomerDb {
  forProject(projectId: number): Db
  /** What a user does outside of every project. */
  forUser(userId: number): Db
}

/**
 * For the rest of a customer's transaction: besides its project, no row of another domain. Not part of `forProject`,
 * because who calls, and to which domain they are bound, is looked up in the transaction itself.
 */
export async function bindToDomain(tx: ReadTx, domainId: number): Promise<void> {
  await sql`select set_config('postern.domain_id', ${String(domainId)}, true)`.execute(tx)
}

/** Statements as somebody else's library writes them. */
export interface Statements {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface DatabaseOptions {
  url: string
  applicationName: string
  /** Connections per role. */
  poolSize: number
  onError: (error: unknown, what: string) => void
  /** Tests set these: shorter where the time-out is what is tested, longer where the machine may be busy. */
  timeouts?: Partial<typeof usualTimeouts>
}

// A request waits at most this long for a connection, a lock, a statement: each is far above what a healthy
// database needs and below what a caller waits for. `queryMs` is for a server that can no longer tell that it gave up: a
// network that went away.
const usualTimeouts = { connectMs: 5_000, lockMs: 5_000, queryMs: 20_000 }
const statementTimeoutMs = 15_000
// No transaction waits for the network, so an idle one is a bug that holds locks.
const idleInTransactionTimeoutMs = 10_000

type AccessMode = 'read only' | 'read write'

/** Transactions of one project, or of one user outside of projects, in this process. */
const transactionShare = { atOnce: 2, waitingAtMost: 100 }
/** Of no project; ids begin at 1. */
const noProject = 0

const maxAttempts = 5
const retryBaseDelayMs = 10

/** `readonly` is for `postern signer` alone. */
type PoolRole = DbRole | 'readonly'

/** One pool per role, opened on first use. */
export class Database {
  readonly #options: DatabaseOptions
  readonly #shares = new KeyedSemaphore<string>(transactionShare)
  readonly #pools = new Map<PoolRole, { pool: pg.Pool; kysely: Kysely<Schema> }>()

  constructor(options: DatabaseOptions) {
    this.#options = options
  }

  as(role: Exclude<PoolRole, 'customer'>): UnscopedDb {
    return new RoleDb(this.#open(role), this.#options)
  }

  asCustomer(): CustomerDb {
    const kysely = this.#open('customer')
    const shared = (share: string, projectId: number) =>
      new SharedDb(new RoleDb(kysely, this.#options, projectId), this.#shares, share)
    return {
      forProject: (projectId) => shared(`project ${projectId}`, projectId),
      forUser: (userId) => shared(`user ${userId}`, noProject),
    }
  }

  /** For Better Auth alone, which brings its own queries. */
  kyselyAsIdentity(): Kysely<Schema> {
    return this.#open('identity')
  }

  /** For pg-boss alone, which brings its own statements. */
  statementsAsAdmin(): Statements {
    this.#open('admin')
    return {
      executeSql: async (text, values) => {
        const pool = this.#pools.get('admin')?.pool
        if (!pool) throw new Error('the database was closed')
        return pool.query(text, values)
      },
    }
  }

  /** How busy the pools are, for whoever reads metrics. */
  /** Of all that a process has open: a role has a pool in each. */
  static showPools(databases: readonly Database[]): void {
    const roles = new Set(
      databases.flatMap((database) => [...database.#pools.keys()].filter((role) => role !== 'readonly')),
    )
    for (const role of roles) {
      const open = databases.flatMap((database) => {
        const pool = database.#pools.get(role)?.pool
        return pool ? [{ pool, size: database.#options.poolSize }] : []
      })
      const sum = (of: (one: (typeof open)[number]) => number) => open.reduce((all, one) => all + of(one), 0)
      metrics.poolConnections.set(
        { role, state: 'idle' },
        sum(({ pool }) => pool.idleCount),
      )
      metrics.poolConnections.set(
        { role, state: 'busy' },
        sum(({ pool }) => pool.totalCount - pool.idleCount),
      )
      metrics.poolWaiting.set(
        { role },
        sum(({ pool }) => pool.waitingCount),
      )
      metrics.poolSize.set(
        { role },
        sum(({ size }) => size),
      )
    }
  }

  async close(): Promise<void> {
    const open = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(open.map(({ kysely }) => kysely.destroy()))
  }

  #open(role: PoolRole): Kysely<Schema> {
    const known = this.#pools.get(role)
    if (known) return known.kysely
    const timeouts = { ...usualTimeouts, ...this.#options.timeouts }
    const pool = new pg.Pool({
      connectionString: this.#options.url,
      application_name: this.#options.applicationName,
      max: this.#options.poolSize,
      connectionTimeoutMillis: timeouts.connectMs,
      query_timeout: timeouts.queryMs,
      keepAlive: true,
      types: pgTypes,
      options: startupOptions(role, timeouts.lockMs),
      onConnect: (client) => {
        // A connection lost while in use fails its query, which tells; unheard, it would also end the process.
        client.on('error', () => {})
        return requireFit(client, role)
      },
    })
    // An idle connection that the server ends; the next query opens another.
    pool.on('error', (error) => this.#options.onError(error, 'an idle database connection was lost'))
    const kysely = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
    this.#pools.set(role, { pool, kysely })
    return kysely
  }
}

// The mail plane takes some hundred rows by their keys out of tables that grow without end. While they are small, the
// planner would rather read them whole and hash; with what it then knows it goes on doing so for a while.
const byRow = { enable_hashjoin: 'off', enable_mergejoin: 'off', enable_seqscan: 'off' }

function startupOptions(role: PoolRole, lockTimeoutMs: number): string {
  const settings = {
    role: roleName(role),
    search_path: 'pg_catalog',
    TimeZone: 'UTC',
    lock_timeout: lockTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    // Compiling a statement takes longer than any of ours takes, and is begun on an estimate.
    jit: 'off',
    ...(role === 'mail' ? byRow : {}),
  }
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

/**
 * A pooler between us and the server may drop the start-up settings without a word; every query would then
 * run as the login itself, past the walls.
 *
 * A standby answers, but takes no writes: a pool that kept such a connection would go on failing when there is a primary
 * again. One look at the start is enough: a primary that becomes a standby ends its connections.
 */
async function requireFit(client: pg.ClientBase, role: PoolRole): Promise<void> {
  const { rows } = await client.query<{ current_user: string; is_standby: boolean }>(
    'select current_user::text, pg_is_in_recovery() as is_standby',
  )
  const actual = rows[0]?.current_user
  if (actual !== roleName(role)) {
    throw new Error(
      `the connection acts as ${actual} and not as ${roleName(role)}: does a pooler drop start-up options?`,
    )
  }
  if (rows[0]?.is_standby) throw unavailable(new Error('the server is a standby'))
}

type Effect = () => void | Promise<void>

const writable = (trx: ControlledTransaction<Schema>, effects: Effect[]): Tx =>
  Object.assign(trx, { onCommit: (effect: Effect) => effects.push(effect) }) as never

/** Carries the result of a rehearsal past the commit that does not happen. */
class Rehearsed {
  readonly result: unknown

  constructor(result: unknown) {
    this.result = result
  }
}

class SharedDb implements Db {
  readonly #db: Db
  readonly #shares: KeyedSemaphore<string>
  readonly #share: string

  constructor(db: Db, shares: KeyedSemaphore<string>, share: string) {
    this.#db = db
    this.#shares = shares
    this.#share = share
  }

  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#shares.run(this.#share, () => this.#db.transaction(work))
  }

  dryRun<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#shares.run(this.#share, () => this.#db.dryRun(work))
  }

  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T> {
    return this.#shares.run(this.#share, () => this.#db.read(work))
  }
}

class RoleDb implements UnscopedDb {
  readonly #kysely: Kysely<Schema>
  readonly #options: DatabaseOptions
  readonly #projectId: number | undefined

  constructor(kysely: Kysely<Schema>, options: DatabaseOptions, projectId?: number) {
    this.#kysely = kysely
    this.#options = options
    this.#projectId = projectId
  }

  async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const { result, effects } = await this.#retrying('read write', async () => {
      const effects: Effect[] = []
      const result = await this.#once('read write', (trx) => work(writable(trx, effects)))
      return { result, effects }
    })
    for (const effect of effects) {
      try {
        await effect()
      } catch (error) {
        this.#options.onError(error, 'an after-commit callback failed')
      }
    }
    return result
  }

  dryRun<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#retrying('read write', async () => {
      try {
        return await this.#once('read write', async (trx) => {
          throw new Rehearsed(await work(writable(trx, [])))
        })
      } catch (error) {
        if (error instanceof Rehearsed) return error.result as T
        throw error
      }
    })
  }

  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T> {
    return this.#retrying('read only', () => this.#once('read only', (trx) => work(trx as never)))
  }

  readOne<T>(query: (tx: ReadTx) => Promise<T>): Promise<T> {
    return this.#retrying('read only', () => query(this.#kysely as never))
  }

  async #retrying<T>(accessMode: AccessMode, attempt: () => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried++) {
      try {
        return await attempt()
      } catch (error) {
        if (!isRetryable(error) || tried === maxAttempts) throw translateFailure(error, accessMode)
        // Full jitter: two transactions that collided must not meet again.
        await sleep(Math.random() * retryBaseDelayMs * 2 ** tried)
      }
    }
  }

  async #once<T>(
    accessMode: AccessMode,
    work: (trx: ControlledTransaction<Schema>) => Promise<T>,
  ): Promise<T> {
    const trx = await this.#kysely.startTransaction().setAccessMode(accessMode).execute()
    let result: T
    try {
      if (this.#projectId !== undefined) {
        await sql`select set_config('postern.project_id', ${String(this.#projectId)}, true)`.execute(trx)
      }
      result = await work(trx)
    } catch (error) {
      await this.#abandon(trx, error)
      throw error
    }
    try {
      await trx.commit().execute()
    } catch (error) {
      await this.#abandon(trx, error)
      throw commitFailure(error)
    }
    return result
  }

  /**
   * Rolls back, which also gives the connection back to the pool: after a failed commit, too, or it would be
   * lost to it. The failure that led here is the one to tell; a rollback only fails on a connection that is gone.
   */
  async #abandon(trx: ControlledTransaction<Schema>, cause: unknown): Promise<void> {
    const rollback = trx
      .rollback()
      .execute()
      .catch((error: unknown) => this.#options.onError(error, 'a rollback failed'))
    // On a network that went away it would only time out, too: the caller need not wait for that.
    if (!isTimedOut(cause)) await rollback
  }
}
