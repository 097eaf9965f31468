import type { PosternError } from '../../../platform/errors.ts'
import type { SpanContext } from '../../../platform/telemetry/tracing.ts'
import type { ReadDraft } from './draft.ts'
import type { Sender } from './sending-checks.ts'
import type { Accepted } from './wire.ts'

/** How mail comes to be accepted. */
export type AcceptChannel = 'http' | 'batch' | 'smtp' | 'forward'

/** What is asked of acceptance, and what it answers. */
export interface AcceptRequest {
  sender: Sender
  /** One mail, or a batch that is accepted in one transaction, each for itself. */
  mails: readonly ReadDraft[]
  repeatable?: Repeatable | undefined
  /** The span that it came with, where one is recorded. */
  trace?: SpanContext | undefined
}

export type AcceptResult = { accepted: Accepted } | { refused: PosternError }

/** `repeated`: the answer that the same request had the first time. */
export type AcceptResponse = { outcomes: AcceptResult[] } | { repeated: { status: number; body: string } }

/** A request with an `Idempotency-Key`. */
export interface Repeatable {
  actor: string
  operation: string
  key: string
  requestHash: Buffer
  /** What is to be said again; undefined for what is not: a refusal may be mended and sent under the same key. */
  answerOf(answer: AcceptResponse): { status: number; body: string } | undefined
}
