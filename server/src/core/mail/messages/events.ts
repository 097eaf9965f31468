import type { Tx } from '../../../platform/db/db.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import type { EventType } from '../../shared/events.ts'
import { insertEvents, type NewEvent } from './events.sql.ts'

// Writes events as rows of mail.events, in the transaction that makes the change or, for the result of an attempt, in the
// one that publishes the result (core/mail/dispatch/results.ts).
//
// `message.sent` is written once: for the result that the worker recorded, or by the intake if a report arrives before the
// worker has recorded the hand-over.

export type { NewEvent }

export interface RecipientEvent {
  projectId: number
  messageId: string
  recipientNo: number
  type: Extract<EventType, `message.${string}`>
  /** The address. */
  recipient: string
  /** RFC 3463, such as 5.1.1. */
  status: string | null
  /** The text of a mail server's reply or report. */
  diagnostic: string | null
}

/** Writes events of any projects. */
export async function writeEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await insertEvents(tx, events)
  tx.onCommit(() => {
    for (const { type } of events) metrics.mailEvents.add({ type })
  })
}

/** Writes one event for each recipient. */
export const writeRecipientEvents = (tx: Tx, events: readonly RecipientEvent[]): Promise<void> =>
  writeEvents(
    tx,
    events.map(({ projectId, messageId, recipientNo, type, recipient, status, diagnostic }) => ({
      ...{ projectId, type, messageId, recipientNo },
      data: { recipient, status, diagnostic: diagnostic === null ? null : storable(diagnostic) },
    })),
  )

/** Enough for any legitimate reply. */
const maxCharacters = 2000

/** Untrusted text in a form that PostgreSQL can store: without NUL and lone surrogates. */
export const storable = (text: string): string =>
  text.slice(0, maxCharacters).toWellFormed().replaceAll('\0', '\ufffd')
