import type { Tx } from '../../../platform/db/db.ts'
import { deleteIdle } from './drop.sql.ts'
import { wakeQueue } from './webhooks.ts'

/**
 * For a deleted endpoint. An empty queue is deleted immediately. Otherwise the queue is made due now, and the
 * worker that leases it deletes the deliveries. Attempts are kept until their retention period ends.
 */
export async function dropQueue(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  if (!(await deleteIdle(tx, projectId, endpointId))) await wakeQueue(tx, projectId, endpointId)
}
