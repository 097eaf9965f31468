import type { Tx } from '../../../platform/db/db.ts'
import { deleteIdle } from './drop.sql.ts'
import { wakeQueue } from './webhooks.ts'

/**
 * The endpoint of this queue is gone. What waits is dropped by whoever has the queue's lease, and so it is woken, however
 * long it was to rest; a queue that nothing waits in goes at once. Attempts stay for their time.
 */
export async function dropQueue(tx: Tx, projectId: number, endpointId: number): Promise<void> {
  if (!(await deleteIdle(tx, projectId, endpointId))) await wakeQueue(tx, projectId, endpointId)
}
