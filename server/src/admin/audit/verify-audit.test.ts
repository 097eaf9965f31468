import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import pg from 'pg'
import { runCheckpoints } from '../../core/control/audit/checkpoints.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { auditEntry, everyKind, recordEach } from '../../testing/fixtures/audit-entries.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'

const database = await testDatabase()
const folder = await mkdtemp(path.join(tmpdir(), 'postern-verify-'))
cleanUp(() => rm(folder, { recursive: true }))
const file = path.join(folder, 'checkpoints')
const api = await startApi(database, { POSTERN_AUDIT_CHECKPOINT_FILE: file })
const admin = await signedIn(api)
await recordEach(api.context.db.admin, everyKind)

const { config, db, log } = api.context
const signHeads = () => runCheckpoints({ db: db.admin, masterKeys: config.masterKeys, file, log })

/** Blocks verifications until `release` is called. */
async function lockedHeads() {
  const client = new pg.Client({ connectionString: database.superuserUrl })
  await client.connect()
  await client.query('begin; lock table control.audit_heads in access exclusive mode')
  return {
    isWaitedFor: () =>
      eventually('a verification waits for the lock', async () => {
        const { rows } = await client.query(
          `select from pg_locks where relation = 'control.audit_heads'::regclass and not granted`,
        )
        return rows.length > 0
      }),
    release: () => client.end(),
  }
}

describe('audit.verify', () => {
  test('reports an intact audit log, before and after the first checkpoint', async () => {
    const { status, body } = await admin.get('/audit/verify')
    assert.equal(status, 200)
    assert.deepEqual([body.ok, body.signed, body.first_bad], [true, false, null])
    await signHeads()
    const { body: signed } = await admin.get('/audit/verify')
    assert.deepEqual([signed.ok, signed.signed, signed.checkpoints, signed.notes], [true, true, 1, []])
  })

  test("verifies a project's chain, the chain without a project, and an empty chain", async () => {
    const extents = []
    for (const project of [8, 0, 999_999_999]) {
      const { body } = await admin.get(`/audit/verify?project_id=${project}`)
      extents.push([body.ok, body.rows > 0, body.chains, body.notes[0]])
    }
    assert.deepEqual(extents, [
      [true, true, 1, 'Only chain 8 was verified.'],
      [true, true, 1, 'Only chain 0 was verified.'],
      [true, false, 0, 'Only chain 999999999 was verified.'],
    ])
  })

  test('reports personal data without an audit row', async () => {
    await database.query(`insert into control.audit_people (audit_id, part, salt) values
      (777, 'actor', decode(repeat('00', 16), 'hex'))`)
    for (const chain of ['', '?project_id=0']) {
      const { body } = await admin.get(`/audit/verify${chain}`)
      assert.match(body.first_bad.problem, /id 777, which does not exist/)
    }
    const { body } = await admin.get('/audit/verify?project_id=8')
    assert.equal(body.ok, true)
    const exported = await admin.get('/audit/export?project_id=0')
    assert.match(exported.text, /"type":"person","audit_id":777/)
    await database.query('delete from control.audit_people where audit_id = 777')
  })

  test('reports a missing checkpoint file', async () => {
    await recordEach(api.context.db.admin, [auditEntry()])
    await signHeads()
    await rm(file)
    const { status, body } = await admin.get('/audit/verify')
    assert.equal(status, 200)
    assert.deepEqual([body.ok, body.first_bad.chain, body.first_bad.seq], [false, null, null])
    assert.match(body.first_bad.problem, /is missing or empty, although checkpoints exist/)
    await signHeads()
    assert.match(api.logLines.join(), /A new file begins with checkpoint/)
    assert.equal((await admin.get('/audit/verify')).body.ok, true)
  })

  test('does not support HEAD, and neither does audit.export', async () => {
    for (const route of ['verify', 'export']) {
      const url = `${api.url}/v1/admin/audit/${route}`
      assert.equal((await fetch(url, { method: 'HEAD', headers: admin.headers })).status, 405)
    }
  })

  test('runs one verification at a time and stops when the client disconnects', async () => {
    const hold = await lockedHeads()
    const first = admin.get('/audit/verify')
    await hold.isWaitedFor()
    const second = await admin.get('/audit/verify')
    assertProblem(second, 503, 'unavailable')
    assert.equal(second.headers.get('retry-after'), '30')
    await hold.release()
    assert.equal((await first).body.ok, true)

    const again = await lockedHeads()
    const caller = new AbortController()
    const url = `${api.url}/v1/admin/audit/verify`
    const abandoned = fetch(url, { headers: admin.headers, signal: caller.signal })
    await again.isWaitedFor()
    caller.abort()
    await assert.rejects(abandoned)
    await again.release()
    await eventually(
      'the abandoned verification has ended',
      async () => (await admin.get('/audit/verify')).status === 200,
    )
  })

  test('reports a row with an unreadable value, and list and export still work', async () => {
    await database.query('alter table control.audit disable trigger all')
    await database.query(`update control.audit set after = (repeat('[', 5000) || repeat(']', 5000))::jsonb
      where chain = 8 and seq = 2`)
    const { status, body } = await admin.get('/audit/verify')
    assert.equal(status, 200)
    assert.deepEqual([body.ok, body.first_bad.chain, body.first_bad.seq], [false, 8, 2])
    assert.equal((await admin.get('/audit?project_id=8')).status, 200)
    const exported = await admin.get('/audit/export?project_id=8')
    assert.equal(exported.status, 200)
    assert.match(exported.text, /\n\{"type":"end","rows":3,/)
  })
})
