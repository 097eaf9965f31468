import type { Tx } from '../../../platform/db/db.ts'
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

const inProgress = (): PosternError =>
  new PosternError(
    'request_in_progress',
    'The first request with this Idempotency-Key is still running. Repeat it shortly to get its answer.',
    { retryAfterSeconds: 1 },
  )

const reused = (): PosternError =>
  new PosternError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another request within the last 24 hours. Use a new key.',
  )

interface Claimed extends KeyScope {
  place: number
  repeatable: Repeatable
}

/**
 * `Idempotency-Key` of mail: as core/control/idempotency does it for everything else, but for a whole group at once and in the
 * mail schema, where the mail is. Claimed and stored in the transaction that accepts the mail.
 */
export class IdempotentAcceptance {
  readonly #claimed: Claimed[]
  readonly #answers: Map<number, AcceptResponse>

  private constructor(claimed: Claimed[], answers: Map<number, AcceptResponse>) {
    this.#claimed = claimed
    this.#answers = answers
  }

  static async claim(tx: Tx, submissions: readonly AcceptRequest[]): Promise<IdempotentAcceptance> {
    const asked = submissions.flatMap(({ sender, mails, repeatable }, place) =>
      repeatable
        ? [{ ...repeatable, projectId: sender.projectId, place, repeatable, count: mails.length }]
        : [],
    )
    const answers = new Map<number, AcceptResponse>()
    if (asked.length === 0) return new IdempotentAcceptance([], answers)
    const refuse = (one: (typeof asked)[number], refused: PosternError) =>
      answers.set(one.place, { outcomes: Array.from({ length: one.count }, () => ({ refused })) })

    // The second of two in one group has the first one's lock, because they share the transaction.
    const seen = new Set<string>()
    const isFree = await claimKeys(tx, asked)
    const mine = asked.filter((one, place) => {
      const name = JSON.stringify([one.projectId, one.actor, one.operation, one.key])
      const isMine = isFree[place] === true && !seen.has(name)
      seen.add(name)
      if (!isMine) refuse(one, inProgress())
      return isMine
    })
    const stored = await findAnswers(tx, mine)
    const claimed = mine.filter((one, place) => {
      const before = stored[place]
      if (!before) return true
      if (before.request_hash.equals(one.requestHash)) answers.set(one.place, { repeated: before })
      else refuse(one, reused())
      return false
    })
    return new IdempotentAcceptance(claimed, answers)
  }

  /** Undefined for a submission that is to be decided now. */
  answerOf(place: number): AcceptResponse | undefined {
    return this.#answers.get(place)
  }

  async remember(tx: Tx, answers: readonly AcceptResponse[]): Promise<void> {
    const kept = this.#claimed.flatMap((one) => {
      const answer = one.repeatable.answerOf(answers[one.place] as AcceptResponse)
      return answer ? [{ ...one, requestHash: one.repeatable.requestHash, ...answer }] : []
    })
    if (kept.length > 0) await insertAnswers(tx, kept)
  }
}

export const purgeMailIdempotency = (tx: Tx): Promise<number> => deleteExpiredAnswers(tx, purgedAtOnce)
