import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Tx } from '../../../platform/db/db.ts'
import { claimKeys, findAnswers, insertAnswers, type KeyScope } from './idempotency.sql.ts'
import { inProgress, reused } from './idempotency.ts'

interface Response {
  status: number
  body: string | null
  etag: string | null
  location: string | null
}

/**
 * `Idempotency-Key` support for mutations in the mail schema other than sending. Works like
 * core/control/idempotency, in a transaction on the mail database. The whole response is stored as JSON,
 * because the table has no columns for headers.
 */
export class IdempotentMailMutation {
  readonly #scope: KeyScope
  readonly #requestHash: Buffer

  constructor(scope: KeyScope, request: object) {
    this.#scope = scope
    this.#requestHash = createHash('sha256')
      .update(canonicalize(request) ?? '')
      .digest()
  }

  /** Locks the key until the end of the transaction. */
  async claim(tx: Tx): Promise<void> {
    const [isFree] = await claimKeys(tx, [this.#scope])
    if (!isFree) throw inProgress()
  }

  /** The stored response, if this request has succeeded before. */
  async findResponse(tx: Tx): Promise<Response | undefined> {
    const [stored] = await findAnswers(tx, [this.#scope])
    if (!stored) return undefined
    if (!stored.request_hash.equals(this.#requestHash)) throw reused()
    return JSON.parse(stored.body) as Response
  }

  async storeResponse(tx: Tx, response: Response): Promise<void> {
    const { status } = response
    await insertAnswers(tx, [
      { ...this.#scope, requestHash: this.#requestHash, status, body: JSON.stringify(response) },
    ])
  }
}
