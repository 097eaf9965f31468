import type { AcceptResult } from '../../core/mail/messages/accept-request.ts'
import { Accepted, messageExample } from '../../core/mail/messages/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { asResponse, type HttpResponse } from '../../platform/http/response.ts'
import { customOperation } from '../operation.ts'
import { mailsOf, sendingBodies } from './request-mails.ts'
import { repeatableOf, repeated, senderOf } from './sender.ts'

// 25 MiB of mail, whose attachments are in Base64 here as they are there, and room for the JSON around it.
export const messageBodyLimitBytes = 36 * 1024 * 1024

/** The codes of the sending checks, in the order in which they are made. */
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
    "Accepts a message for sending; the answer comes once it is stored. Checked in this order: the project is not locked, its subscription is in force, the sender's domain is the project's and verified (and the key's, if the key is bound to one), the provider is allowed, the message is well formed with at most 50 recipients and 25 MiB. Suppressed recipients are left out, and an event tells so. Each other recipient is one mail of the day's and the month's quota. A body above 64 KiB is refused before it is read when the project can send nothing, and so when its quota is used up, even if every recipient is suppressed.",
  params: NoParams,
  query: {},
  body: sendingBodies['messages.send'],
  bodyLimitBytes: messageBodyLimitBytes,
  example: messageExample,
  refusals: sendingRefusals,
  leavesNoActivity: 'Sending is the hot path; each mail has its own records.',
  success: { status: 202, means: 'Accepted: it is stored, and is sent from here on.' },
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
    if (!outcome || 'refused' in outcome) throw outcome?.refused ?? new Error('a mail without a verdict')
    return asResponse(202, outcome.accepted)
  },
})

/** A refusal is not kept: it may be mended and sent again under the same key. */
function acceptedAnswer([outcome]: AcceptResult[]): HttpResponse | undefined {
  return outcome && 'accepted' in outcome ? asResponse(202, outcome.accepted) : undefined
}
