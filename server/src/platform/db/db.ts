import type { Socket } from 'node:net'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { KeyedSemaphore } from '../scheduling/keyed-semaphore.ts'
import { unavailable } from './failures.ts'
import { HintSender, notifyOn } from './hint-sender.ts'
import { HintListener } from './hints.ts'
import { pgTypes } from './pg-types.ts'
import { poolConnections, poolSize, poolWaiting } from './pool-metrics.ts'
import { preparingClient } from './preparing-client.ts'
import { type DbRole, roleName } from './roles.ts'
import type { DB as Schema } from './schema.gen.ts'
import {
  type Db,
  type OneStatement,
  type ReadTx,
  RoleDb,
  SharedDb,
  type TransactionOptions,
  type Tx,
  type UnscopedDb,
} from './transactions.ts'

export type { Db, OneStatement, ReadTx, Schema, Tx, UnscopedDb }

/**
 * The customer plane's database connection, always scoped to a project or a user. Each project runs at most two
 * transactions at the same time. Additional transactions wait without a connection, so one project cannot exhaust the pool.
 */
export interface CustomerDb {
  forProject(projectId: number): Db
  /** For a user's actions outside any project. */
  forUser(userId: number): Db
}

/**
 * Restricts the rest of a customer's transaction to one domain's rows. Not part of `forProject`, because the caller and its
 * domain binding are only read inside the transaction.
 */
export async function bindToDomain(tx: ReadTx, domainId: number): Promise<void> {
  await sql`select set_config('postern.domain_id', ${String(domainId)}, true)`.execute(tx)
}

/** Raw SQL for libraries with their own statements. */
export interface Statements {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface DatabaseOptions extends TransactionOptions {
  url: string
  applicationName: string
  /** Only for tests: shorter to test timeouts, longer on a busy machine. */
  timeouts?: Partial<typeof usualTimeouts>
}

// The maximum time to wait for a connection, a lock and a statement. Each is far above what a healthy database needs and
// below typical HTTP client timeouts. `queryMs` applies when the network fails and the server cannot report its own
// timeout.
const usualTimeouts = { connectMs: 5_000, lockMs: 5_000, queryMs: 20_000 }
const statementTimeoutMs = 15_000
// No transaction waits for network calls, so an idle transaction is a bug that holds locks.
const idleInTransactionTimeoutMs = 10_000

// Longer than the minute between two runs of the sweeps, which would otherwise open their connections again each time.
const idleTimeoutMillis = 90_000

/** Per-process limits for one project's transactions, or for one user's transactions outside projects. */
const transactionShare = { atOnce: 2, waitingAtMost: 100 }
/** Matches no project: ids start at 1. */
const noProject = 0

/** Only `postern signer` uses `readonly`. */
type PoolRole = DbRole | 'readonly'

/** One pool per role, opened on first use. */
export class Database {
  readonly #options: DatabaseOptions
  readonly #shares = new KeyedSemaphore<string>(transactionShare)
  readonly #pools = new Map<PoolRole, { pool: pg.Pool; kysely: Kysely<Schema> }>()
  readonly #hintSender = new HintSender()
  /** Wakes the loops of a worker. */
  readonly hints: HintListener

  constructor(options: DatabaseOptions) {
    this.#options = options
    this.hints = new HintListener({
      connect: (stream) => this.#connect(stream),
      notify: (payload) => notifyOn(this.#open('mail'), [payload]),
      onError: options.onError,
    })
  }

  as(role: Exclude<PoolRole, 'customer'>): UnscopedDb {
    return new RoleDb(this.#open(role), this.#options, this.#hintSender)
  }

  asCustomer(): CustomerDb {
    const kysely = this.#open('customer')
    const shared = (share: string, projectId: number) =>
      new SharedDb(new RoleDb(kysely, this.#options, this.#hintSender, projectId), this.#shares, share)
    return {
      forProject: (projectId) => shared(`project ${projectId}`, projectId),
      forUser: (userId) => shared(`user ${userId}`, noProject),
    }
  }

  /** Only for Better Auth, which runs its own queries. */
  kyselyAsIdentity(): Kysely<Schema> {
    return this.#open('identity')
  }

  /** Only for pg-boss, which runs its own statements. */
  statementsAsAdmin(): Statements {
    this.#open('admin')
    return {
      executeSql: async (text, values) => {
        const pool = this.#pools.get('admin')?.pool
        if (!pool) throw new Error('the database is closed')
        return pool.query(text, values)
      },
    }
  }

  /** Sets the pool gauges: per role, the sum over all databases of this process. */
  static showPools(databases: readonly Database[]): void {
    const roles = new Set(
      databases.flatMap((database) => [...database.#pools.keys()].filter((role) => role !== 'readonly')),
    )
    for (const role of roles) {
      const open = databases.flatMap((database) => {
        const pool = database.#pools.get(role)?.pool
        return pool ? [{ pool, size: database.#options.poolSize }] : []
      })
      const sum = (value: (entry: (typeof open)[number]) => number) =>
        open.reduce((total, entry) => total + value(entry), 0)
      poolConnections.set(
        { role, state: 'idle' },
        sum(({ pool }) => pool.idleCount),
      )
      poolConnections.set(
        { role, state: 'busy' },
        sum(({ pool }) => pool.totalCount - pool.idleCount),
      )
      poolWaiting.set(
        { role },
        sum(({ pool }) => pool.waitingCount),
      )
      poolSize.set(
        { role },
        sum(({ size }) => size),
      )
    }
  }

  async close(): Promise<void> {
    await this.hints.close()
    const open = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(open.map(({ kysely }) => kysely.destroy()))
  }

  #open(role: PoolRole): Kysely<Schema> {
    const existing = this.#pools.get(role)
    if (existing) return existing.kysely
    const pool = new pg.Pool({
      ...this.#clientConfig(role),
      max: this.#options.poolSize,
      idleTimeoutMillis,
      // Better Auth runs its own statements.
      ...(role !== 'identity' && { Client: preparingClient(role === 'mail' ? 'all' : 'writes') }),
      onConnect: (client) => {
        // The query on a lost connection fails anyway; without a listener, the event would terminate the process.
        client.on('error', () => {})
        return requireRoleAndPrimary(client, role)
      },
    })
    // The server closed an idle connection. The next query opens a new one.
    pool.on('error', (error) => this.#options.onError(error, 'an idle database connection was lost'))
    const kysely = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
    this.#pools.set(role, { pool, kysely })
    return kysely
  }

  /** A connection outside the pools, for LISTEN. */
  async #connect(stream: Socket): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#clientConfig('mail'), stream: () => stream })
    // As in #open. The caller detects a lost connection by the stream.
    client.on('error', () => {})
    await client.connect()
    await requireRoleAndPrimary(client, 'mail')
    return client
  }

  #clientConfig(role: PoolRole): pg.ClientConfig {
    const timeouts = { ...usualTimeouts, ...this.#options.timeouts }
    return {
      connectionString: this.#options.url,
      application_name: this.#options.applicationName,
      connectionTimeoutMillis: timeouts.connectMs,
      query_timeout: timeouts.queryMs,
      keepAlive: true,
      types: pgTypes,
      options: startupOptions(role, timeouts.lockMs),
    }
  }
}

// The mail role fetches a few hundred rows by key from tables that grow without limit. While the tables are small, the
// planner prefers sequential scans and hash joins, and keeps those plans for a while after the tables have grown.
const indexScansOnly = { enable_hashjoin: 'off', enable_mergejoin: 'off', enable_seqscan: 'off' }

function startupOptions(role: PoolRole, lockTimeoutMs: number): string {
  const settings = {
    role: roleName(role),
    search_path: 'pg_catalog',
    TimeZone: 'UTC',
    lock_timeout: lockTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    // JIT compilation takes longer than any statement here, and is triggered by estimates.
    jit: 'off',
    ...(role === 'mail' ? indexScansOnly : {}),
  }
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

/**
 * Checks the role of a new connection, because a connection pooler can silently drop the startup options. Every query would
 * then run as the login role, without the plane's restrictions.
 *
 * Rejects a standby, because a pool that kept the connection would continue to fail after a primary becomes available
 * again. Checking once is enough: a primary that becomes a standby closes its connections.
 */
async function requireRoleAndPrimary(client: pg.ClientBase, role: PoolRole): Promise<void> {
  const { rows } = await client.query<{ current_user: string; is_standby: boolean }>(
    'select current_user::text, pg_is_in_recovery() as is_standby',
  )
  const actual = rows[0]?.current_user
  if (actual !== roleName(role)) {
    throw new Error(
      `the connection has role ${actual}, not ${roleName(role)}: a connection pooler may drop startup options`,
    )
  }
  if (rows[0]?.is_standby) throw unavailable(new Error('the server is a standby'))
}
