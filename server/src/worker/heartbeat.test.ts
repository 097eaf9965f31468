import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { writeHeartbeat } from '../platform/db/replica-age.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { keepHeartbeat } from './heartbeat.ts'

const database = await testDatabase()

describe('the control heartbeat', () => {
  test('is written repeatedly until the signal is aborted, and the mail role cannot write it', async () => {
    await database.query('delete from control.heartbeat')
    const stopping = new AbortController()
    const admin = openDatabase(database).as('admin')
    const running = keepHeartbeat({ db: admin, log: createLogger('silent'), everyMs: 10 }, stopping.signal)
    const seen = new Set<string>()
    await eventually('three heartbeats', async () => {
      const rows = await database.query<{ at: string }>('select at::text from control.heartbeat')
      for (const { at } of rows) seen.add(at)
      return seen.size >= 3
    })
    stopping.abort()
    await running
    assert.equal((await database.query('select from control.heartbeat')).length, 1)
    await assert.rejects(
      openDatabase(database)
        .as('mail')
        .transaction((tx) => writeHeartbeat(tx)),
      /permission denied/,
    )
  })
})
