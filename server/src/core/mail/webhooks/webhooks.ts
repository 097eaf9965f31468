import type { Tx } from '../../../platform/db/db.ts'
import { insertReplay } from './replays.sql.ts'
import { endRest, insertDelivery, resetQueue } from './webhooks.sql.ts'

/**
 * What others may ask about deliveries, in a transaction of the mail plane. The state machine is in
 * migrations/000003_mail.sql.
 */

/**
 * One event, once more, with all its time again; an endpoint that rests is tried at once. False when there is no such
 * event or endpoint in the project.
 */
export async function deliverAgain(
  tx: Tx,
  projectId: number,
  endpointId: number,
  eventId: string,
): Promise<boolean> {
  const isThere = await insertDelivery(tx, projectId, endpointId, eventId)
  if (isThere) await endRest(tx, projectId, endpointId)
  return isThere
}

/** The events of a range of time, from and before, once more. False when a replay of this endpoint is running. */
export const startReplay = (
  tx: Tx,
  projectId: number,
  endpointId: number,
  range: { from: Date; to: Date; onlyUndelivered: boolean },
): Promise<boolean> => insertReplay(tx, projectId, endpointId, range)

/** It was switched on, or is to be tried at once: failures are forgotten, and what waits is due. */
export const wakeQueue = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  resetQueue(tx, projectId, endpointId)

/** A person waits for an answer: an endpoint that rests is tried at once. */
export const tryNow = (tx: Tx, projectId: number, endpointId: number): Promise<void> =>
  endRest(tx, projectId, endpointId)
