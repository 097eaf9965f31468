import Type from 'typebox'
import type { AcceptResult } from '../../core/mail/messages/accept-request.ts'
import { Accepted, MessageRequest, messageExample } from '../../core/mail/messages/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { Problem } from '../../platform/http/problem.ts'
import { asResponse } from '../../platform/http/response.ts'
import { customOperation } from '../operation.ts'
import { mailsOf, sendingBodies } from './request-mails.ts'
import { messageBodyLimitBytes, sendingRefusals } from './send-message.ts'
import { repeatableOf, repeated, senderOf } from './sender.ts'

export const sendBatchOperation = customOperation({
  id: 'messages.send-batch',
  method: 'POST',
  path: '/projects/:project_id/messages/batch',
  pathOfKey: '/messages/batch',
  summary: 'Send a batch of messages',
  description:
    'Accepts up to 500 messages, each with the fields of `messages.send`. Each message is accepted or rejected individually, and the response is 202 even if all of them are rejected. `data` contains one result per message, in the same order: either the accepted message or the error. The limit of 36 MiB applies to the whole body, and an `Idempotency-Key` to the whole batch. If the project cannot send at all, for example because its quota is exhausted, a body larger than 64 KiB is rejected as a whole before it is read.',
  params: NoParams,
  query: {},
  body: sendingBodies['messages.send-batch'],
  documentedBody: { messages: Type.Array(MessageRequest, { minItems: 1, maxItems: 500 }) },
  bodyLimitBytes: messageBodyLimitBytes,
  example: { messages: [messageExample] },
  refusals: sendingRefusals,
  leavesNoActivity: 'Sending is the hot path; each message has its own records.',
  success: { status: 202, means: 'Each message was accepted or rejected.' },
  answer: Type.Object(
    { data: Type.Array(Type.Union([Accepted, Problem])) },
    { title: 'BatchAnswer', additionalProperties: false },
  ),
  async handle({ caller, body, idempotencyKey, faultOf, trace }, { acceptance }) {
    const isRepeatable = idempotencyKey !== undefined
    const { mails, requestHash } = mailsOf('messages.send-batch', body, { isRepeatable, faultOf })
    const answer = await acceptance.accept(
      {
        trace,
        sender: senderOf(caller),
        mails,
        repeatable: repeatableOf('messages.send-batch', caller, idempotencyKey, requestHash, keptAnswer),
      },
      'batch',
    )
    const refused = 'outcomes' in answer ? answer.outcomes.map(wholeRefusal).find(Boolean) : undefined
    if (refused) throw refused
    return repeated(answer) ?? decidedAnswer('outcomes' in answer ? answer.outcomes : [])
  },
})

/** An error that concerns the whole request. */
const wholeRefusal = (outcome: AcceptResult) =>
  'refused' in outcome && ['request_in_progress', 'idempotency_key_reused'].includes(outcome.refused.code)
    ? outcome.refused
    : undefined

/**
 * The response is stored for repeated requests if any message was accepted. Otherwise, the request can be corrected and
 * sent again with the same key.
 */
const keptAnswer = (outcomes: AcceptResult[]) =>
  outcomes.some((outcome) => 'accepted' in outcome) ? decidedAnswer(outcomes) : undefined

/** Limits the length, because an error can quote the value and a batch can have 500 errors. */
const maxFaultLength = 300

const decidedAnswer = (outcomes: AcceptResult[]) =>
  asResponse(202, {
    data: outcomes.map((outcome) =>
      'accepted' in outcome
        ? outcome.accepted
        : { error: outcome.refused.code, message: shortened(outcome.refused.message) },
    ),
  })

const shortened = (text: string): string =>
  text.length > maxFaultLength ? `${text.slice(0, maxFaultLength - 1)}…` : text
