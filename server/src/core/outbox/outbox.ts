import type { Tx } from '../../platform/db/db.ts'
import type { EventType } from '../shared/events.ts'
import { insert, insertMailRow } from './outbox.sql.ts'

// The transactional outboxes between the control side and the mail side. A message is a row that is inserted in the same
// transaction as the change. A hint wakes a worker, which relays the row within about a second: relay-to-mail.ts and
// relay-to-control.ts.

/**
 * The messages from the control side to the mail side (control.outbox), by topic. Each is applied exactly once, in the
 * order of the rows.
 */
export interface OutboxMessages {
  /** An event for endpoints. */
  event: { type: Extract<EventType, `${'domain' | 'endpoint' | 'project'}.${string}`>; data: object }
  /** A test event for only this endpoint. */
  'endpoint.test': { endpoint_id: number }
  /** A request to deliver events again. */
  'endpoint.replay': { endpoint_id: number } & ({ event_id: string } | ReplayedRange)
  /** The endpoint was enabled: its failures are cleared and its deliveries are due now. */
  'endpoint.enabled': { endpoint_id: number }
  /** The endpoint was deleted: its deliveries are deleted. */
  'endpoint.deleted': { endpoint_id: number }
  /** An administrator suppressed addresses: at most 1,000 in a message. */
  'suppressions.added': { suppressions: { address: string; reason: string }[]; created_at: string }
  /** An administrator deleted a suppression. `reason` and `created_at` identify it. */
  'suppression.deleted': { address: string; reason: string; created_at: string }
}

/** RFC 3339 timestamps. */
interface ReplayedRange {
  from: string
  to: string
  only_undelivered: boolean
}

export type Topic = keyof OutboxMessages

export const publishToMail = <T extends Topic>(
  tx: Tx,
  projectId: number,
  topic: T,
  payload: OutboxMessages[T],
): Promise<void> => insert(tx, projectId, topic, payload)

/** Inserts a row of mail.outbox. */
export const publishToControl = insertMailRow
