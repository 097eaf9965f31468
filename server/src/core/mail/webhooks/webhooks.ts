// Operations on deliveries for other modules, in a transaction on the mail database.
// migrations/000003_mail.sql documents a queue's states and transitions.

import type { Tx } from '../../../platform/db/db.ts'
import { insertReplay } from './replays.sql.ts'
import { clearBackoff, insertDelivery, resetQueue } from './webhooks.sql.ts'

/**
 * Delivers one event again with a full retry schedule, and ends the endpoint's backoff. Returns false if the
 * project does not have this event or endpoint.
 */
export async function deliverAgain(
  tx: Tx,
  projectId: number,
  endpointId: number,
  eventId: string,
): Promise<boolean> {
  const exists = await insertDelivery(tx, projectId, endpointId, eventId)
  if (exists) await clearBackoff(tx, projectId, endpointId)
  return exists
}

/**
 * Replays the events in a time range (`to` is exclusive). Returns false if a replay for this endpoint is
 * already running.
 */
export const startReplay = (
  tx: Tx,
  projectId: number,
  endpointId: number,
  range: { from: Date; to: Date; onlyUndelivered: boolean },
): Promise<boolean> => insertReplay(tx, projectId, endpointId, range)

/** For an endpoint that was enabled: clears its failures and makes its deliveries due now. */
export const wakeQueue = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  resetQueue(tx, projectId, endpointId)

/** Ends the endpoint's backoff, so a test is sent immediately. */
export const tryNow = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  clearBackoff(tx, projectId, endpointId)
