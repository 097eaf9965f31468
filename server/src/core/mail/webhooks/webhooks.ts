// Operations on deliveries for other modules, in a transaction of the mail side. The states and transitions of a queue are in
// migrations/000003_mail.sql.

import type { Tx } from '../../../platform/db/db.ts'
import { insertReplay } from './replays.sql.ts'
import { clearBackoff, insertDelivery, resetQueue } from './webhooks.sql.ts'

/**
 * Delivers one event again, with a full retry schedule, and ends the endpoint's backoff. False: the project does not have
 * this event or endpoint.
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

/** Replays the events of a time range (`to` is exclusive). False: a replay of this endpoint is running. */
export const startReplay = (
  tx: Tx,
  projectId: number,
  endpointId: number,
  range: { from: Date; to: Date; onlyUndelivered: boolean },
): Promise<boolean> => insertReplay(tx, projectId, endpointId, range)

/** For an endpoint that was enabled: clears its failures and makes its deliveries due now. */
export const wakeQueue = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  resetQueue(tx, projectId, endpointId)

/** Ends the endpoint's backoff, so that a test is sent at once. */
export const tryNow = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  clearBackoff(tx, projectId, endpointId)
