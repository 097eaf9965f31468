import type { Tx } from '../../platform/db/db.ts'
import type { EventType } from '../shared/events.ts'
import { insert, insertMailRow } from './outbox.sql.ts'

/**
 * What control has to tell mail: a row of control.outbox, written in the transaction that makes it true, and applied
 * within about a second by a worker (relay-to-mail.ts), once and in the order of the rows.
 */
export interface OutboxMessages {
  /** Something that endpoints are told about. */
  event: { type: Extract<EventType, `${'domain' | 'endpoint' | 'project'}.${string}`>; data: object }
  /** An event for this endpoint alone. */
  'endpoint.test': { endpoint_id: number }
  /** What it was told once, or was to be, is delivered again. */
  'endpoint.replay': { endpoint_id: number } & ({ event_id: string } | ReplayedRange)
  /** Switched on: what waits for it is tried at once, and failures are counted anew. */
  'endpoint.enabled': { endpoint_id: number }
  /** Nothing waits for it any more. */
  'endpoint.deleted': { endpoint_id: number }
  /** An administrator deleted it: mail to the address is accepted again. The others say which one was meant. */
  'suppression.deleted': { address: string; reason: string; created_at: string }
}

/** Times as in JSON. */
interface ReplayedRange {
  from: string
  to: string
  only_undelivered: boolean
}

export type Topic = keyof OutboxMessages

export const publishToMail = <Told extends Topic>(
  tx: Tx,
  projectId: number,
  topic: Told,
  payload: OutboxMessages[Told],
): Promise<void> => insert(tx, projectId, topic, payload)

/** The other way: a row of mail.outbox, written in the transaction that makes it true. */
export const publishToControl = insertMailRow
