import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import Type, { type TSchema } from 'typebox'
import { type ReadDraft, readDraft } from '../../core/mail/messages/draft.ts'
import { LooseMessageRequest, type MessageRequest, messageFields } from '../../core/mail/messages/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { CheckedBody } from '../../platform/http/checked-body.ts'

/** Converts a validated body to messages, both in the server and in the worker thread that reads large bodies. */

export type SendingOperation = 'messages.send' | 'messages.send-batch'

/** The fields of the bodies. */
export const sendingBodies = {
  'messages.send': messageFields,
  // Each message is validated separately, so an invalid one does not fail the others.
  'messages.send-batch': { messages: Type.Array(Type.Unknown(), { minItems: 1, maxItems: 500 }) },
}

export interface RequestMails {
  mails: ReadDraft[]
  /** Identifies a repeated request; undefined without an Idempotency-Key. */
  requestHash: Buffer | undefined
}

/** The validation message for a value; undefined if the value is valid. */
export type FaultOf = (schema: TSchema, value: unknown) => string | undefined

export function mailsOf(
  operation: SendingOperation,
  body: object,
  { isRepeatable, faultOf }: { isRepeatable: boolean; faultOf: FaultOf },
): RequestMails {
  if (body instanceof CheckedBody) return body.content as RequestMails
  const now = Date.now()
  const readItem = (message: unknown): ReadDraft => {
    const fault = faultOf(LooseMessageRequest, message)
    return fault === undefined
      ? readDraft(message as MessageRequest, now)
      : { fault: new PosternError('validation_failed', fault), senderDomain: null }
  }
  return {
    mails:
      operation === 'messages.send'
        ? [readDraft(body as MessageRequest, now)]
        : (body as { messages: unknown[] }).messages.map(readItem),
    requestHash: isRepeatable ? hashOf(body) : undefined,
  }
}

const hashOf = (body: object): Buffer =>
  createHash('sha256')
    .update(canonicalize(body) ?? '')
    .digest()
