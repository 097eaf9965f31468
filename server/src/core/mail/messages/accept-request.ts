import type { PosternError } from '../../../platform/errors.ts'
import type { SpanContext } from '../../../platform/telemetry/tracing.ts'
import type { ReadDraft } from './draft.ts'
import type { Sender } from './sending-checks.ts'
import type { Accepted } from './wire.ts'

/** How a message arrived. */
export const acceptChannels = ['http', 'batch', 'smtp', 'forward'] as const
export type AcceptChannel = (typeof acceptChannels)[number]

/** A request to accept mail, and its response. */
export interface AcceptRequest {
  sender: Sender
  /**
   * One message or a batch. A batch is accepted in one transaction, but each message is accepted or rejected
   * separately.
   */
  mails: readonly ReadDraft[]
  repeatable?: Repeatable | undefined
  /** The span of the request, if it is traced. */
  trace?: SpanContext | undefined
}

export type AcceptResult = { accepted: Accepted } | { refused: PosternError }

/** `repeated` is the stored response to the first request with the same Idempotency-Key. */
export type AcceptResponse = { outcomes: AcceptResult[] } | { repeated: { status: number; body: string } }

/** A request with an `Idempotency-Key`. */
export interface Repeatable {
  actor: string
  operation: string
  key: string
  requestHash: Buffer
  /**
   * The response to store. Undefined for a rejection, which is not stored: the caller can fix the request and
   * reuse the key.
   */
  answerOf(response: AcceptResponse): { status: number; body: string } | undefined
}
