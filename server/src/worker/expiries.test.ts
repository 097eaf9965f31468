import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import type { UnscopedDb } from '../platform/db/db.ts'
import { fixtures } from '../testing/fixtures/fixtures.ts'
import { mailRows } from '../testing/fixtures/mail-rows.ts'
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
const { makeMail } = mailRows(database)
const db = openDatabase(database).as('admin')
const reason = 'Needed'

async function whileRunning(work: () => Promise<unknown>): Promise<void> {
  const stopping = new AbortController()
  const { log, cells } = api.context
  const { performBulkActions } = workerDeps(api.context)
  const running = runExpiries(
    { db, mailOf: cells.mailOf, performBulkActions, log, everyMs: 50 },
    stopping.signal,
  )
  try {
    await work()
  } finally {
    stopping.abort()
    await running
  }
}

test('a worker that starts after the expiry ends a lock and restores an override', async () => {
  const { id } = await makeProject()
  const change = { is_locked: true, allow_service_mta: true, expires_at: inDays(1), reason: 'For a day' }
  assert.equal((await admin.patch(`/projects/${id}`, change)).status, 200)
  for (const table of ['interventions', 'reversals'])
    await database.query(`update control.${table} set expires_at = postern.now() - interval '1 hour'`)
  await whileRunning(() =>
    eventually('the project is as before', async () => {
      const { is_locked, allow_service_mta } = (await admin.get(`/projects/${id}`)).body
      return !is_locked && !allow_service_mta
    }),
  )
  const rows = (await admin.get(`/audit?project_id=${id}&actor=0`)).body.data
  assert.deepEqual(
    rows.map(({ operation }: { operation: string }) => operation),
    ['projects.revert', 'interventions.expire'],
  )
})

test('a worker ends a gradual release when its mail is gone, and executes a discard meanwhile', async () => {
  const [paced, discarded] = [await makeProject(), await makeProject()]
  const { messageId } = await makeMail(paced.id, { status: 'queued', dispatch: 'ready' })
  await makeMail(discarded.id, { status: 'queued', dispatch: 'ready' })
  await admin.post(`/projects/${paced.id}/queue/release`, { per_minute: 1, reason })
  const [{ id }] = (await admin.get(`/projects/${paced.id}/interventions`)).body.data
  await admin.post(`/projects/${discarded.id}/queue/discard`, { reason })
  const release = async () => (await admin.get(`/projects/${paced.id}/interventions/${id}`)).body
  await whileRunning(async () => {
    await eventually('the mail is discarded', async () => {
      const [{ status }] = (await admin.get(`/projects/${discarded.id}/queue/discards`)).body.data
      return status === 'finished'
    })
    assert.equal((await release()).ended_at, null)
    await database.query('delete from mail.dispatch where message_id = $1', [messageId])
    await eventually('the release is complete', async () => (await release()).ended_by === 'drained')
  })
})

test('an idle worker executes one statement at a time', async () => {
  const statements: string[] = []
  const count = (what: string) => () => {
    statements.push(what)
    throw new Error(`unexpected: ${what}`)
  }
  const idle: UnscopedDb = {
    ...{ read: count('read'), dryRun: count('dryRun'), transaction: count('transaction') },
    writeOne: count('writeOne'),
    readOne: (query) => {
      statements.push('readOne')
      return db.readOne(query)
    },
  }
  const mailOf = () => assert.fail('the mail database was read')
  const stopping = new AbortController()
  const running = runExpiries(
    { db: idle, mailOf, performBulkActions: count('bulk'), log: api.context.log, everyMs: 1 },
    stopping.signal,
  )
  await eventually('three polls', async () => statements.length >= 3)
  stopping.abort()
  await running
  assert.deepEqual(new Set(statements), new Set(['readOne']))
})
