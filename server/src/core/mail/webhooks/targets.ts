import type { KeyObject } from 'node:crypto'
import { Batcher, type BatcherOptions } from '../../../platform/batching/batcher.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { PosternError } from '../../../platform/errors.ts'
import type { SealedSecret, Vault } from '../../control/secrets/vault.ts'
import type { Leased } from './endpoint-queues.sql.ts'
import { signingKey } from './signature.ts'
import { findTargets, type TargetRow } from './target.sql.ts'

/**
 * Lookups within 2 ms share a statement. A request holds its slot during the lookup, so a longer time leaves
 * slots unused. With 1 ms, the worker needs 15% more CPU time for each delivery; with 4 ms, no less.
 */
export const lookupBatching: BatcherOptions = { gatherMs: 2, atMost: 200 }

/** An endpoint's URL and signing key. */
export interface Target {
  origin: string
  /** Includes the query. */
  path: string
  key: KeyObject
  /** The database's time: receivers reject requests whose timestamp differs too much from their clock. */
  nowSeconds: number
}

/** `gone`: the endpoint was deleted. */
export type TargetLookup = Target | 'inactive' | 'gone'

/** A row as it was last read for a run, with its decrypted key. */
interface Opened {
  url: string
  sealed: Buffer
  target: Target
}

/**
 * Reads endpoints before each request: after a rotation is committed, no new request is signed with the old
 * secret. Concurrent requests share a statement, and a run decrypts the secret again only if the stored bytes
 * have changed. Nothing is kept after the run.
 */
export class Targets {
  readonly #db: UnscopedDb
  readonly #vault: Vault
  readonly #lookups: Batcher<Leased, TargetLookup | PosternError>
  /** Lookups that have not started, by endpoint. */
  readonly #waiting = new Map<number, Promise<TargetLookup>>()
  /** By the claimed queue, which exists as long as its run. */
  readonly #opened = new WeakMap<Leased, Opened>()

  constructor(db: UnscopedDb, vault: Vault) {
    this.#db = db
    this.#vault = vault
    this.#lookups = new Batcher((queues) => this.#find(queues), lookupBatching)
  }

  /**
   * Returns the same promise to all calls for an endpoint until its lookup starts. Rejects if the secret
   * cannot be decrypted.
   */
  of(queue: Leased): Promise<TargetLookup> {
    const waiting = this.#waiting.get(queue.endpoint_id)
    if (waiting !== undefined) return waiting
    const lookup = this.#lookups.submit(queue).then((found) => {
      if (found instanceof Error) throw found
      return found
    })
    this.#waiting.set(queue.endpoint_id, lookup)
    return lookup
  }

  async #find(queues: readonly Leased[]): Promise<(TargetLookup | PosternError)[]> {
    for (const { endpoint_id } of queues) this.#waiting.delete(endpoint_id)
    const rows = await this.#db.readOne((tx) => findTargets(tx, queues))
    const errors = await this.#open(queues, rows)
    return queues.map((queue, index) => {
      const row = rows[index]
      if (!row) return 'gone'
      if (!row.is_active) return 'inactive'
      const target = this.#opened.get(queue)?.target
      return errors.get(queue) ?? (target ? { ...target, nowSeconds: row.now_seconds } : 'gone')
    })
  }

  /** Decrypts the secrets that are new or have changed since the last lookup of their run. */
  async #open(
    queues: readonly Leased[],
    rows: readonly (TargetRow | undefined)[],
  ): Promise<Map<Leased, PosternError>> {
    const changed = queues.flatMap((queue, index) => {
      const row = rows[index]
      return row?.is_active && !isSame(this.#opened.get(queue), row) ? [{ queue, row }] : []
    })
    const errors = new Map<Leased, PosternError>()
    if (changed.length === 0) return errors
    const secrets = await this.#db.readOne((tx) => this.#vault.openAll(tx, changed.map(sealedSecret)))
    for (const [index, { queue, row }] of changed.entries()) {
      const secret = secrets[index]
      if (typeof secret === 'string') this.#opened.set(queue, openedOf(row, secret))
      else if (secret !== undefined) errors.set(queue, secret)
    }
    return errors
  }
}

const isSame = (opened: Opened | undefined, { url, encrypted_secret }: TargetRow): boolean =>
  opened !== undefined && opened.url === url && opened.sealed.equals(encrypted_secret)

function openedOf({ url, encrypted_secret: sealed, now_seconds }: TargetRow, secret: string): Opened {
  const { origin, pathname, search } = new URL(url)
  const target = { origin, path: pathname + search, key: signingKey(secret), nowSeconds: now_seconds }
  return { url, sealed, target }
}

const sealedSecret = ({ queue, row }: { queue: Leased; row: TargetRow }): SealedSecret => ({
  projectId: queue.project_id,
  location: { table: 'control.endpoints', column: 'encrypted_secret', rowId: queue.endpoint_id },
  sealed: row.encrypted_secret,
})
