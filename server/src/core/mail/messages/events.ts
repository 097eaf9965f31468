import type { Tx } from '../../../platform/db/db.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import { type EventType, eventTypes } from '../../shared/events.ts'
import { insertEvents, type NewEvent } from './events.sql.ts'

// Writes events as rows in mail.events, in the same transaction as the change. The event for an attempt's
// result is written in the transaction that publishes the result (core/mail/dispatch/results.ts).
//
// `message.sent` is written once: for the result that the worker recorded, or by the intake if a report
// arrives before the worker has recorded its result.

export type { NewEvent }

const eventCount = new Counter('postern_events_total', 'Events written, by type.', {
  type: [...eventTypes, 'endpoint.test'] as const,
})

export interface RecipientEvent {
  projectId: number
  messageId: string
  recipientNo: number
  type: Extract<EventType, `message.${string}`>
  recipient: string
  /** RFC 3463 code, such as 5.1.1. */
  status: string | null
  /** The text of a mail server's reply or report. */
  diagnostic: string | null
}

export async function writeEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await insertEvents(tx, events)
  tx.onCommit(() => {
    for (const { type } of events) eventCount.add({ type })
  })
}

/** Writes one event per recipient. */
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

/** Converts untrusted text to a form that PostgreSQL can store: without NUL and lone surrogates. */
export const storable = (text: string): string =>
  text.slice(0, maxCharacters).toWellFormed().replaceAll('\0', '\ufffd')
