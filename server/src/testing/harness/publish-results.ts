import assert from 'node:assert/strict'
import { ResultPublisher } from '../../core/mail/dispatch/results.ts'
import type { Db } from '../../platform/db/db.ts'

/** Publishes the due results, as a worker does. `db` must have the role that writes mail. */
export async function publishDue(db: Db): Promise<void> {
  const publisher = new ResultPublisher(db, { suppressOn: new Set(), onError: assert.ifError })
  await publisher.sweep()
  await publisher.settled()
}
