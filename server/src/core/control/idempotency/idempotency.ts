/**
 * `Idempotency-Key`: a repeated request gets the first response and has no second effect.
 *
 * The key is claimed and the response stored in the operation's transaction, so the effect never exists without the
 * response. Only successes are stored: a rejected request can be corrected and sent again with the same key. A response that
 * contained a secret is stored without its body.
 */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { OneStatement, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  deleteExpired,
  find,
  type IdempotencyScope,
  insert,
  type StoredResponse,
  tryLock,
} from './idempotency.sql.ts'

/** A response without a body that contained no secret. */
const noContent = 204

export class IdempotentRequest {
  readonly #scope: IdempotencyScope
  readonly #requestHash: Buffer

  constructor(scope: IdempotencyScope, request: object) {
    this.#scope = scope
    this.#requestHash = createHash('sha256')
      .update(canonicalize(request) ?? '')
      .digest()
  }

  /** Must be called first in the transaction. Otherwise two concurrent requests would both find nothing stored. */
  async claim(tx: Tx): Promise<void> {
    if (await tryLock(tx, this.#scope)) return
    throw new PosternError(
      'request_in_progress',
      'The first request with this Idempotency-Key is still in progress. Retry shortly to get its response.',
      { retryAfterSeconds: 1 },
    )
  }

  /** The stored response, if this request has succeeded before. */
  async findResponse(tx: Tx): Promise<StoredResponse | undefined> {
    const stored = await find(tx, this.#scope)
    if (!stored) return undefined
    if (!stored.request_hash.equals(this.#requestHash)) {
      throw new PosternError(
        'idempotency_key_reused',
        'This Idempotency-Key was used for another request within the last 24 hours. Use a new key.',
      )
    }
    if (stored.body === null && stored.status !== noContent) {
      throw new PosternError(
        'secret_already_revealed',
        'This request has already succeeded, and its response contained a secret, which is shown only once. ' +
          'If the secret is lost, rotate it.',
        { location: stored.location ?? undefined },
      )
    }
    return stored
  }

  /**
   * The same for a DELETE of a missing resource. Undefined unless an earlier request with the same key deleted the resource.
   */
  async recallDeletion(tx: Tx): Promise<StoredResponse | undefined> {
    const stored = await find(tx, this.#scope)
    return stored?.request_hash.equals(this.#requestHash) ? stored : undefined
  }

  async storeResponse(tx: Tx, response: StoredResponse): Promise<void> {
    await insert(tx, this.#scope, this.#requestHash, response)
  }
}

/**
 * Finds the target of a mutation. `deleting` is the request if it is a DELETE with an Idempotency-Key. The resource of a
 * repeated DELETE is gone, so the first response is returned as `deletion` instead of a 404.
 */
export async function findTarget<Target>(
  find: () => Promise<Target>,
  tx: Tx,
  deleting: IdempotentRequest | undefined,
): Promise<{ target: Target; deletion?: undefined } | { target?: undefined; deletion: StoredResponse }> {
  try {
    return { target: await find() }
  } catch (error) {
    const isMissing = error instanceof PosternError && error.code === 'not_found'
    const deletion = isMissing ? await deleting?.recallDeletion(tx) : undefined
    if (deletion) return { deletion }
    throw error
  }
}

export const purgeIdempotency = (tx: OneStatement): Promise<number> => deleteExpired(tx, purgedAtOnce)
