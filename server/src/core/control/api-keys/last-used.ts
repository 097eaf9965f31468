import type { CustomerDb } from '../../../platform/db/db.ts'
import type { ApiKeyRow } from './api-keys.ts'
import { noteUse } from './authenticate.ts'

/** When keys were last used, written down at most once a minute, and by nobody who waits for an answer. */
const minuteMs = 60_000
/** Keys that this process remembers; what it has forgotten, the database still knows. */
const remembered = 10_000

export class LastUsed {
  readonly #db: CustomerDb
  readonly #onError: (error: unknown) => void
  readonly #notedAt = new Map<number, number>()

  constructor(db: CustomerDb, onError: (error: unknown) => void) {
    this.#db = db
    this.#onError = onError
  }

  note({ id, project_id }: ApiKeyRow): void {
    const now = performance.now()
    if (now - (this.#notedAt.get(id) ?? Number.NEGATIVE_INFINITY) < minuteMs) return
    // Behind the others, so that the first ones are the oldest.
    this.#notedAt.delete(id)
    this.#notedAt.set(id, now)
    const [oldest] = this.#notedAt.keys()
    if (this.#notedAt.size > remembered && oldest !== undefined) this.#notedAt.delete(oldest)
    this.#db
      .forProject(project_id)
      .transaction((tx) => noteUse(tx, project_id, id))
      .catch(this.#onError)
  }
}
