import type { Tx } from '../../../platform/db/db.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import type { EventType } from '../../shared/events.ts'
import { insertEvents, type NewEvent } from './events.sql.ts'

export type { NewEvent }

/**
 * What happens to mail, as rows of mail.events, written by the transaction that makes it true or, for the result of an
 * attempt, by the one that publishes the result (core/mail/dispatch/results.ts).
 *
 * `message.sent` is written once: for the result that the worker left, or by the intake if a report comes before the worker
 * has recorded the hand-over.
 */
export interface RecipientEvent {
  projectId: number
  messageId: string
  recipientNo: number
  type: Extract<EventType, `message.${string}`>
  /** The address. */
  recipient: string
  /** RFC 3463, such as 5.1.1. */
  status: string | null
  /** What a machine said, in its own words. */
  diagnostic: string | null
}

/** Any number at once, of any projects. */
export async function writeEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await insertEvents(tx, events)
  tx.onCommit(() => {
    for (const { type } of events) metrics.mailEvents.add({ type })
  })
}

/** What became of recipients. */
export const writeRecipientEvents = (tx: Tx, events: readonly RecipientEvent[]): Promise<void> =>
  writeEvents(
    tx,
    events.map(({ projectId, messageId, recipientNo, type, recipient, status, diagnostic }) => ({
      ...{ projectId, type, messageId, recipientNo },
      data: { recipient, status, diagnostic: diagnostic === null ? null : storable(diagnostic) },
    })),
  )

/** Enough for any reply; what is longer was written by somebody who means harm. */
const maxCharacters = 2000

/** What a stranger's machine said, so that PostgreSQL can hold it: no NUL, no half of a surrogate pair. */
export const storable = (said: string): string =>
  said.slice(0, maxCharacters).toWellFormed().replaceAll('\0', '\ufffd')
