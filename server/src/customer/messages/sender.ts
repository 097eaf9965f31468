import type { AcceptResponse, AcceptResult, Repeatable } from '../../core/mail/messages/accept-request.ts'
import { type Sender, senderOfKey } from '../../core/mail/messages/sending-checks.ts'
import type { HttpResponse } from '../../platform/http/response.ts'
import { actorOf, type Caller } from '../caller.ts'

/** Converts the caller and the Idempotency-Key to the arguments of acceptance. */
export const senderOf = (caller: Caller): Sender =>
  caller.kind === 'key'
    ? senderOfKey(caller.key)
    : { projectId: caller.projectId, apiKey: null, userId: caller.user.id }

export function repeatableOf(
  operation: string,
  caller: Caller,
  key: string | undefined,
  requestHash: Buffer | undefined,
  answerOf: (outcomes: AcceptResult[]) => HttpResponse | undefined,
): Repeatable | undefined {
  if (key === undefined || requestHash === undefined) return undefined
  return {
    actor: actorOf(caller),
    operation,
    key,
    requestHash,
    answerOf(answer) {
      const said = 'outcomes' in answer ? answerOf(answer.outcomes) : undefined
      return said && { status: said.status, body: said.body ?? '' }
    },
  }
}

/** The stored response, if the request has already succeeded. */
export const repeated = (answer: AcceptResponse): HttpResponse | undefined =>
  'repeated' in answer
    ? {
        status: answer.repeated.status,
        body: answer.repeated.body,
        etag: null,
        location: null,
        isRepeated: true,
      }
    : undefined
