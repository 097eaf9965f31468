import assert from 'node:assert/strict'
import { FanOut } from '../../core/mail/webhooks/fan-out.ts'
import type { UnscopedDb } from '../../platform/db/db.ts'
import type { TestDatabase } from './database.ts'
import { eventually } from './waiting.ts'

/** Inserts the deliveries of all events, as a worker does. `db` must have the role that writes mail. */
export async function fanOutAll(db: UnscopedDb, { query }: TestDatabase): Promise<void> {
  const fanOut = new FanOut(db, (error) => assert.ifError(error))
  await eventually('all events are fanned out', async () => {
    await fanOut.step()
    return (await query('select from mail.fan_outs limit 1')).length === 0
  })
}
