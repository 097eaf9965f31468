import type { OneStatement, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { AcceptRequest, AcceptResponse, Repeatable } from './accept-request.ts'
import {
  claimKeys,
  deleteExpiredAnswers,
  findAnswers,
  insertAnswers,
  type KeyScope,
} from './idempotency.sql.ts'

// `Idempotency-Key` support for mail: behaves like core/control/idempotency, but for a whole group and in the
// mail schema. Keys are claimed and responses stored in the transaction that accepts the mail. Responses
// expire after 24 hours.

export const inProgress = (): PosternError =>
  new PosternError(
    'request_in_progress',
    'The first request with this Idempotency-Key is still in progress. Retry shortly to get its response.',
    { retryAfterSeconds: 1 },
  )

export const reused = (): PosternError =>
  new PosternError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another request within the last 24 hours. Use a new key.',
  )

interface Claimed extends KeyScope {
  /** Index of the request in the group. */
  index: number
  repeatable: Repeatable
}

export class IdempotentAcceptance {
  readonly #claimed: Claimed[]
  readonly #responses: Map<number, AcceptResponse>

  private constructor(claimed: Claimed[], responses: Map<number, AcceptResponse>) {
    this.#claimed = claimed
    this.#responses = responses
  }

  static async claim(tx: Tx, requests: readonly AcceptRequest[]): Promise<IdempotentAcceptance> {
    const withKey = requests.flatMap(({ sender, mails, repeatable }, index) =>
      repeatable
        ? [{ ...repeatable, projectId: sender.projectId, index, repeatable, count: mails.length }]
        : [],
    )
    const responses = new Map<number, AcceptResponse>()
    if (withKey.length === 0) return new IdempotentAcceptance([], responses)
    const refuse = (one: (typeof withKey)[number], refused: PosternError) =>
      responses.set(one.index, { outcomes: Array.from({ length: one.count }, () => ({ refused })) })

    // Two requests in one group share the transaction, so the advisory lock does not serialize them.
    const names = new Set<string>()
    const isFree = await claimKeys(tx, withKey)
    const locked = withKey.filter((one, at) => {
      const name = JSON.stringify([one.projectId, one.actor, one.operation, one.key])
      const isLocked = isFree[at] === true && !names.has(name)
      names.add(name)
      if (!isLocked) refuse(one, inProgress())
      return isLocked
    })
    const stored = await findAnswers(tx, locked)
    const claimed = locked.filter((one, at) => {
      const before = stored[at]
      if (!before) return true
      if (before.request_hash.equals(one.requestHash)) responses.set(one.index, { repeated: before })
      else refuse(one, reused())
      return false
    })
    return new IdempotentAcceptance(claimed, responses)
  }

  /** Undefined for a request without a stored response or conflict. */
  responseOf(index: number): AcceptResponse | undefined {
    return this.#responses.get(index)
  }

  async store(tx: Tx, responses: readonly AcceptResponse[]): Promise<void> {
    const kept = this.#claimed.flatMap((one) => {
      const answer = one.repeatable.answerOf(responses[one.index] as AcceptResponse)
      return answer ? [{ ...one, requestHash: one.repeatable.requestHash, ...answer }] : []
    })
    if (kept.length > 0) await insertAnswers(tx, kept)
  }
}

export const purgeMailIdempotency = (tx: OneStatement): Promise<number> =>
  deleteExpiredAnswers(tx, purgedAtOnce)
