import { setTimeout as sleep } from 'node:timers/promises'
import { type ControlledTransaction, type Kysely, sql, type Transaction } from 'kysely'
import type { KeyedSemaphore } from '../scheduling/keyed-semaphore.ts'
import { commitFailure, isRetryable, isStalePlan, isTimedOut, translateFailure } from './failures.ts'
import { type HintName, type HintSender, type Notify, notifyOn } from './hint-sender.ts'
import type { DB as Schema } from './schema.gen.ts'

declare const access: unique symbol

/** A read-only transaction. Every application query runs in a `ReadTx` or a `Tx`. */
export interface ReadTx extends Transaction<Schema> {
  readonly [access]: 'read' | 'write'
}

/** A read-write transaction. A function that takes a `Tx` cannot be called outside a transaction. */
export interface Tx extends ReadTx {
  readonly [access]: 'write'
  /**
   * Runs a callback after the commit. By then the transaction has succeeded, so a failure of the callback is only logged.
   * Work that must not be lost has to be stored as a row.
   */
  onCommit(effect: Effect): void
  /** After the commit, wakes the workers that poll for this kind of work (hints.ts). */
  hint(name: HintName): void
}

/**
 * A plane's database connection. It has no query methods, so that every query runs in a transaction, and it
 * is not assignable to `Tx`.
 */
export interface Db {
  /** Commits when `work` returns and rolls back when it throws. Retries on a deadlock or serialization failure. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** Runs `work` like `transaction`, then rolls back and returns the result. */
  dryRun<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  read<T>(work: (tx: ReadTx) => Promise<T>): Promise<T>
}

/** A statement outside a transaction. There is no commit to wait for. */
export type OneStatement = Omit<Tx, 'onCommit' | 'hint'>

/** For roles that can read every project. */
export interface UnscopedDb extends Db {
  /**
   * Runs a single SELECT without BEGIN and COMMIT, which takes one round trip instead of three. Use `read` for two or
   * more statements.
   */
  readOne<T>(query: (tx: ReadTx) => Promise<T>): Promise<T>
  /** Runs a single statement that writes, without BEGIN and COMMIT. For what a process does all the time, even if it is idle. */
  writeOne<T>(statement: (tx: OneStatement) => Promise<T>): Promise<T>
}

export interface TransactionOptions {
  /** Connections per role. */
  poolSize: number
  onError: (error: unknown, what: string) => void
}

type AccessMode = 'read only' | 'read write'

const maxAttempts = 5
const retryBaseDelayMs = 10

type Effect = () => void | Promise<void>

/** What to do after a transaction commits. */
interface AfterCommit {
  effects: Effect[]
  hints: Set<HintName>
}

const newAfterCommit = (): AfterCommit => ({ effects: [], hints: new Set() })

const writable = (trx: ControlledTransaction<Schema>, { effects, hints }: AfterCommit): Tx =>
  Object.assign(trx, {
    onCommit: (effect: Effect) => void effects.push(effect),
    hint: (name: HintName) => void hints.add(name),
  }) as never

/** Thrown to roll back a dry run and return its result. */
class DryRunResult {
  readonly result: unknown

  constructor(result: unknown) {
    this.result = result
  }
}

/** Limits the concurrent transactions of one project or user. */
export class SharedDb implements Db {
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

/** Transactions of one role, optionally scoped to a project. */
export class RoleDb implements UnscopedDb {
  readonly #kysely: Kysely<Schema>
  readonly #options: TransactionOptions
  readonly #hintSender: HintSender
  readonly #notify: Notify
  readonly #projectId: number | undefined

  constructor(
    kysely: Kysely<Schema>,
    options: TransactionOptions,
    hintSender: HintSender,
    projectId?: number,
  ) {
    this.#kysely = kysely
    this.#options = options
    this.#hintSender = hintSender
    this.#notify = (names) => notifyOn(kysely, names)
    this.#projectId = projectId
  }

  async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const { result, effects, hints } = await this.#retrying('read write', async () => {
      const afterCommit = newAfterCommit()
      const result = await this.#once('read write', (trx) => work(writable(trx, afterCommit)))
      return { result, ...afterCommit }
    })
    this.#hintSender.send(hints, this.#notify)
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
          throw new DryRunResult(await work(writable(trx, newAfterCommit())))
        })
      } catch (error) {
        if (error instanceof DryRunResult) return error.result as T
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

  writeOne<T>(statement: (tx: OneStatement) => Promise<T>): Promise<T> {
    return this.#retrying('read write', () => statement(this.#kysely as never))
  }

  async #retrying<T>(accessMode: AccessMode, attempt: () => Promise<T>): Promise<T> {
    let stalePlans = 0
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt()
      } catch (error) {
        if (isStalePlan(error) && stalePlans++ < this.#options.poolSize) {
          // Each connection of the pool can have the statement prepared.
          attempts--
          continue
        }
        if (!isRetryable(error) || attempts === maxAttempts) throw translateFailure(error, accessMode)
        // Full jitter; otherwise, the transactions would collide again.
        await sleep(Math.random() * retryBaseDelayMs * 2 ** attempts)
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
   * Rolls back, which also returns the connection to the pool. This is also required after a failed commit. A failed
   * rollback is only logged: it means that the connection is lost, and the caller reports the original error.
   */
  async #abandon(trx: ControlledTransaction<Schema>, cause: unknown): Promise<void> {
    const rollback = trx
      .rollback()
      .execute()
      .catch((error: unknown) => this.#options.onError(error, 'a rollback failed'))
    // If the network is down, the rollback times out too; the caller does not wait for it.
    if (!isTimedOut(cause)) await rollback
  }
}
