import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixtures } from '../testing/fixtures/fixtures.ts'
import { inDays } from '../testing/fixtures/sending-projects.ts'
import { startApi } from '../testing/harness/api.ts'
import { signedIn } from '../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { runExpiries } from './expiries.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)

test('a worker that starts after the expiry ends a lock and restores an override', async () => {
  const { id } = await makeProject()
  const change = { is_locked: true, allow_service_mta: true, expires_at: inDays(1), reason: 'For a day' }
  assert.equal((await admin.patch(`/projects/${id}`, change)).status, 200)
  for (const table of ['interventions', 'reversals'])
    await database.query(`update control.${table} set expires_at = postern.now() - interval '1 hour'`)
  const stopping = new AbortController()
  const db = openDatabase(database).as('admin')
  const running = runExpiries({ db, log: api.context.log, everyMs: 50 }, stopping.signal)
  await eventually('the project is as before', async () => {
    const { is_locked, allow_service_mta } = (await admin.get(`/projects/${id}`)).body
    return !is_locked && !allow_service_mta
  })
  stopping.abort()
  await running
  const rows = (await admin.get(`/audit?project_id=${id}&actor=0`)).body.data
  assert.deepEqual(
    rows.map(({ operation }: { operation: string }) => operation),
    ['projects.revert', 'interventions.expire'],
  )
})
