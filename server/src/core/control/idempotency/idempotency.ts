import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  deleteExpired,
  find,
  type IdempotencyScope,
  insert,
  type StoredAnswer,
  tryLock,
} from './idempotency.sql.ts'

/**
 * `Idempotency-Key`: a request sent again has its first answer, not a second effect.
 *
 * The key is claimed and the answer stored in the operation's own transaction, so there is no moment at which
 * the effect exists and the answer does not. Only successes are stored; a refused request may be mended and
 * sent again under the same key. An answer that held a secret is remembered without it.
 */
export class IdempotentRequest {
  readonly #scope: IdempotencyScope
  readonly #requestHash: Buffer

  constructor(scope: IdempotencyScope, request: object) {
    this.#scope = scope
    this.#requestHash = createHash('sha256')
      .update(canonicalize(request) ?? '')
      .digest()
  }

  /** First thing in the transaction: two at once would both find nothing stored. */
  async claim(tx: Tx): Promise<void> {
    if (await tryLock(tx, this.#scope)) return
    throw new PosternError(
      'request_in_progress',
      'The first request with this Idempotency-Key is still running. Repeat it shortly to get its answer.',
      { retryAfterSeconds: 1 },
    )
  }

  /** The first answer, if this request was answered before. */
  async recall(tx: Tx): Promise<(StoredAnswer & { body: string }) | undefined> {
    const stored = await find(tx, this.#scope)
    if (!stored) return undefined
    if (!stored.request_hash.equals(this.#requestHash)) {
      throw new PosternError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for another request within the last 24 hours. Use a new key.',
      )
    }
    if (stored.body === null) {
      throw new PosternError(
        'secret_already_revealed',
        'This request was carried out before, and its answer held a secret, which is shown once only. ' +
          'If it was lost, rotate it.',
        { location: stored.location ?? undefined },
      )
    }
    return { ...stored, body: stored.body }
  }

  async remember(tx: Tx, answer: StoredAnswer): Promise<void> {
    await insert(tx, this.#scope, this.#requestHash, answer)
  }
}

export const purgeIdempotency = (tx: Tx): Promise<number> => deleteExpired(tx, purgedAtOnce)
