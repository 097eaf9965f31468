import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Tx } from '../../../platform/db/db.ts'
import { claimKeys, findAnswers, insertAnswers, type KeyScope } from './idempotency.sql.ts'
import { inProgress, reused } from './idempotency.ts'

/**
 * `Idempotency-Key` of a mutation in the mail schema other than sending: as core/control/idempotency does it, in the
 * transaction of the mail side. The whole response is stored as JSON, because the table has no columns for its headers.
 */
export class IdempotentMailRequest<Response extends { status: number }> {
  readonly #scope: KeyScope
  readonly #requestHash: Buffer

  constructor(scope: KeyScope, request: object) {
    this.#scope = scope
    this.#requestHash = createHash('sha256')
      .update(canonicalize(request) ?? '')
      .digest()
  }

  /** Locks the key until the end of the transaction; returns the first response, if this request was answered before. */
  async claim(tx: Tx): Promise<Response | undefined> {
    const [isFree] = await claimKeys(tx, [this.#scope])
    if (!isFree) throw inProgress()
    const [stored] = await findAnswers(tx, [this.#scope])
    if (!stored) return undefined
    if (!stored.request_hash.equals(this.#requestHash)) throw reused()
    return JSON.parse(stored.body) as Response
  }

  async remember(tx: Tx, response: Response): Promise<void> {
    const { status } = response
    await insertAnswers(tx, [
      { ...this.#scope, requestHash: this.#requestHash, status, body: JSON.stringify(response) },
    ])
  }
}
