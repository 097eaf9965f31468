import type { AcceptResult } from '../../core/mail/messages/accept-request.ts'
import { Accepted, documentedMessageFields, messageExample } from '../../core/mail/messages/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { asResponse, type HttpResponse } from '../../platform/http/response.ts'
import { customOperation } from '../operation.ts'
import { mailsOf, sendingBodies } from './request-mails.ts'
import { repeatableOf, repeated, senderOf } from './sender.ts'

// A message of 25 MiB, with Base64-encoded attachments in both formats, and room for the surrounding JSON.
export const messageBodyLimitBytes = 36 * 1024 * 1024

/** The error codes of the sending checks, in the order of the checks. */
export const sendingRefusals = [
  'project_locked',
  'subscription_inactive',
  'domain_not_verified',
  'provider_not_allowed',
  'quota_exceeded',
] as const

export const sendMessageOperation = customOperation({
  id: 'messages.send',
  method: 'POST',
  path: '/projects/:project_id/messages',
  pathOfKey: '/messages',
  summary: 'Send a message',
  description:
    "Accepts a message and responds once it is stored. Postern then sends it; `messages.show` and webhook events report the result for each recipient. After the format of the request, Postern checks the following in this order, and returns the first error: the project is not locked, its subscription is active, the sender's domain belongs to the project and is verified (and is the API key's domain, if the key is bound to one), the provider is allowed, and the message is well formed, with at most 50 recipients and 25 MiB (attachments count as Base64). Suppressed recipients are skipped, with an event for each of them. Every other recipient counts as one message against the daily and monthly quotas. The body can have up to 36 MiB. If the project cannot send at all, for example because its quota is exhausted, a body larger than 64 KiB is rejected before it is read, even if every recipient is suppressed.",
  params: NoParams,
  query: {},
  body: sendingBodies['messages.send'],
  documentedBody: documentedMessageFields,
  bodyLimitBytes: messageBodyLimitBytes,
  example: messageExample,
  refusals: sendingRefusals,
  leavesNoActivity: 'Sending is the hot path; each message has its own records.',
  success: { status: 202, means: 'Accepted: the message is stored and will be sent.' },
  answer: Accepted,
  async handle({ caller, body, idempotencyKey, faultOf, trace }, { acceptance }) {
    const isRepeatable = idempotencyKey !== undefined
    const { mails, requestHash } = mailsOf('messages.send', body, { isRepeatable, faultOf })
    const answer = await acceptance.accept({
      trace,
      sender: senderOf(caller),
      mails,
      repeatable: repeatableOf('messages.send', caller, idempotencyKey, requestHash, acceptedAnswer),
    })
    if ('repeated' in answer) return repeated(answer) as HttpResponse
    const [outcome] = answer.outcomes
    if (!outcome || 'refused' in outcome) throw outcome?.refused ?? new Error('acceptance returned no result')
    return asResponse(202, outcome.accepted)
  },
})

/** An error response is not stored, so the request can be corrected and sent again with the same key. */
function acceptedAnswer([outcome]: AcceptResult[]): HttpResponse | undefined {
  return outcome && 'accepted' in outcome ? asResponse(202, outcome.accepted) : undefined
}
