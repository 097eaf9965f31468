/** Records when keys were last used, at most once per minute per key, without delaying the request. */
import type { CustomerDb } from '../../../platform/db/db.ts'
import type { ApiKeyRow } from './api-keys.ts'
import { recordUse } from './authenticate.ts'

const minuteMs = 60_000
/** The maximum number of keys in memory. For evicted keys, the database enforces the same interval. */
const maxRemembered = 10_000

export class LastUsed {
  readonly #db: CustomerDb
  readonly #onError: (error: unknown) => void
  readonly #recordedAt = new Map<number, number>()

  constructor(db: CustomerDb, onError: (error: unknown) => void) {
    this.#db = db
    this.#onError = onError
  }

  record({ id, project_id }: ApiKeyRow): void {
    const now = performance.now()
    if (now - (this.#recordedAt.get(id) ?? Number.NEGATIVE_INFINITY) < minuteMs) return
    // Reinserted at the end: the first entry is the oldest.
    this.#recordedAt.delete(id)
    this.#recordedAt.set(id, now)
    const [oldest] = this.#recordedAt.keys()
    if (this.#recordedAt.size > maxRemembered && oldest !== undefined) this.#recordedAt.delete(oldest)
    this.#db
      .forProject(project_id)
      .transaction((tx) => recordUse(tx, project_id, id))
      .catch(this.#onError)
  }
}
