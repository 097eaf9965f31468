/**
 * Denials: rejected requests by signed-in users, counted per actor, operation, error and minute. Repeated requests therefore
 * cannot fill the table. Denials are not chained and are deleted after 90 days.
 */
import type { Db, OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { type Denial, deleteOldDenials, selectDenials, upsertDenial } from './denials.sql.ts'

const keptDays = 90

/**
 * Counts denials in the table. Denials that arrive during a write are combined into the next write. Otherwise a hundred
 * concurrent denials would occupy a hundred connections while waiting for the same row.
 */
export class DenialCounter {
  readonly #db: Db
  readonly #waiting = new Map<string, { denial: Denial; count: number; written: Promise<void> }>()
  readonly #writing = new Map<string, Promise<unknown>>()

  constructor(db: Db) {
    this.#db = db
  }

  /** Resolves when the denial is in the table. */
  count(denial: Denial): Promise<void> {
    const key = JSON.stringify([denial.actorId, denial.operation, denial.error])
    const waiting = this.#waiting.get(key)
    if (waiting) {
      waiting.denial = denial
      waiting.count++
      return waiting.written
    }
    const before = this.#writing.get(key) ?? Promise.resolve()
    const written = before.catch(() => {}).then(() => this.#write(key))
    this.#waiting.set(key, { denial, count: 1, written })
    this.#writing.set(key, written)
    return written
  }

  async #write(key: string): Promise<void> {
    const batch = this.#waiting.get(key)
    this.#waiting.delete(key)
    if (!batch) return
    try {
      await this.#db.transaction((tx) => upsertDenial(tx, batch.denial, batch.count))
    } finally {
      if (this.#writing.get(key) === batch.written) this.#writing.delete(key)
    }
  }
}

export type DenialRow = Awaited<ReturnType<typeof selectDenials>>[number]

/** Newest first. */
export const listDenials = (
  tx: ReadTx,
  query: { actorId?: number | undefined; limit: number; beforeId?: number | undefined },
): Promise<DenialRow[]> => selectDenials(tx, query)

export const denialView = (row: DenialRow) => ({
  id: row.id,
  minute: row.minute.toISOString(),
  actor_id: row.actor_id,
  operation: row.operation,
  error: row.error,
  project_id: row.project_id,
  count: row.count,
  last_request_id: row.last_request_id,
})

/** Returns the number of deleted rows. */
export const purgeDenials = (tx: OneStatement): Promise<number> =>
  deleteOldDenials(tx, keptDays, purgedAtOnce)
