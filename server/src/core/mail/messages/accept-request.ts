import type { PosternError } from '../../../platform/errors.ts'
import type { SpanContext } from '../../../platform/telemetry/tracing.ts'
import type { ReadDraft } from './draft.ts'
import type { Sender } from './sending-checks.ts'
import type { Accepted } from './wire.ts'

/** How a mail arrived. */
export type AcceptChannel = 'http' | 'batch' | 'smtp' | 'forward'

/** A request to acceptance and its response. */
export interface AcceptRequest {
  sender: Sender
  /** One mail, or a batch: accepted in one transaction, each mail accepted or refused on its own. */
  mails: readonly ReadDraft[]
  repeatable?: Repeatable | undefined
  /** The span of the request, if it is traced. */
  trace?: SpanContext | undefined
}

export type AcceptResult = { accepted: Accepted } | { refused: PosternError }

/** `repeated`: the stored response of the first request with the same Idempotency-Key. */
export type AcceptResponse = { outcomes: AcceptResult[] } | { repeated: { status: number; body: string } }

/** A request with an `Idempotency-Key`. */
export interface Repeatable {
  actor: string
  operation: string
  key: string
  requestHash: Buffer
  /** The response to store. Undefined for a refusal, which is not stored: the caller may fix it and reuse the key. */
  answerOf(response: AcceptResponse): { status: number; body: string } | undefined
}
