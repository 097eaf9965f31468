import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Value } from 'typebox/value'
import type { Db } from '../../../platform/db/db.ts'
import { auditEntry, everyKind, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { databaseNow, openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { AuditEntryView, type AuditSearch, auditView, findAudit, searchAudit } from './audit.ts'
import { DenialCounter, denialView, listDenials, purgeDenials } from './denials.ts'
import { erasePerson } from './erasure.ts'
import { verifyAudit } from './verify.ts'

const database = await testDatabase()
const db = openDatabase(database).as('admin')

/** The same database with its clock moved forward. */
async function later(offset: string): Promise<Db> {
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
  return openDatabase(database).as('admin')
}

await recordEach(db, everyKind)
const nextDay = await later('1 day')
await recordEach(nextDay, [
  auditEntry({ projectId: 8, actor: { kind: 'person', id: 9, email: null, ip: null, userAgent: null } }),
])

const list = async (query: Partial<AuditSearch> = {}) =>
  (await db.read((tx) => searchAudit(tx, { limit: 50, ...query }))).rows
const ids = async (query: Partial<AuditSearch> = {}) => (await list(query)).map(({ id }) => id)
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000)

describe('searchAudit', () => {
  test('returns the newest rows first and continues from an id', async () => {
    assert.deepEqual(await ids(), [8, 7, 6, 5, 4, 3, 2, 1])
    assert.deepEqual(await ids({ limit: 3 }), [8, 7, 6])
    assert.deepEqual(await ids({ limit: 3, beforeId: 6 }), [5, 4, 3])
  })

  test('applies each filter and all filters together', async () => {
    assert.deepEqual(await ids({ projectId: 8 }), [8, 7, 6, 5])
    assert.deepEqual(await ids({ projectId: 0 }), [4, 3])
    assert.deepEqual(await ids({ actor: 0 }), [3])
    assert.deepEqual(await ids({ operation: 'members.create' }), [5])
    assert.deepEqual(await ids({ resource: ['member'] }), [6, 5])
    assert.deepEqual(await ids({ resource: ['plan', '2'] }), [4])
    assert.deepEqual(await ids({ resource: ['plan', '3'] }), [])
    assert.deepEqual(await ids({ from: inHours(1) }), [8])
    assert.deepEqual(await ids({ to: inHours(1) }), [7, 6, 5, 4, 3, 2, 1])
    assert.deepEqual(await ids({ from: inHours(-1), to: inHours(1), projectId: 7 }), [2, 1])
    assert.deepEqual(await ids({ from: inHours(25) }), [])
    assert.deepEqual(
      await ids({
        projectId: 8,
        actor: 9,
        operation: 'projects.edit',
        resource: ['project', '7'],
        from: inHours(1),
      }),
      [8],
    )
  })
})

describe('an audit entry', () => {
  test('contains its personal data and matches its schema', async () => {
    for (const row of await list()) {
      const view = auditView(row)
      assert.deepEqual([...Value.Errors(AuditEntryView, view)], [])
    }
    const { at, hash, prev_hash, ...rest } = auditView(await db.read((tx) => findAudit(tx, 6)))
    assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(hash + prev_hash, /^[0-9a-f]{128}$/)
    assert.deepEqual(rest, {
      id: 6,
      chain: 8,
      seq: 2,
      actor_kind: 'person',
      actor: { id: 1, email: 'ada@example.com', ip: '192.0.2.1', user_agent: 'Mozilla/5.0 (Test)' },
      request_id: '0198f2a4-0000-7000-8000-000000000001',
      operation: 'members.delete',
      project_id: 8,
      resource_type: 'member',
      resource_id: '3',
      reason: 'left; „Grüße“ \u2028 𝒳',
      before: { role: 'viewer', nothing: null, list: [1, 'two', { three: 3 }] },
      after: null,
      related: [{ resource: 'project', id: 8, before: { user_id: 1 }, after: { user_id: 2 } }],
      limit_exception: null,
      bulk_id: null,
      subject: { email: 'carol@example.com', name: null },
    })
  })

  test('is not found if it does not exist', async () => {
    await assert.rejects(
      db.read((tx) => findAudit(tx, 999)),
      { code: 'not_found', message: 'Audit entry 999 does not exist.' },
    )
  })

  test('contains no data about an erased actor or subject, and still verifies', async () => {
    const erase = (email: string) =>
      db.transaction((tx) => erasePerson(tx, { email, requestId: 'r', reason: 'erasure request' }))
    assert.equal(await erase('nobody@example.com'), 0)
    assert.equal(await erase('Carol@Example.com'), 1)
    assert.equal(await erase('ada@example.com'), 5)
    const { actor, subject } = auditView(await db.read((tx) => findAudit(tx, 6)))
    assert.deepEqual(actor, { id: 1, email: null, ip: null, user_agent: null })
    assert.equal(subject, null)
    const { ok, erased } = await verifyAudit(db, { keys: new Map() })
    assert.deepEqual({ ok, erased }, { ok: true, erased: 6 })
    const rows = await database.query('select * from control.audit_people')
    assert.ok(!/ada|carol/.test(JSON.stringify(rows)))
  })
})

describe('denials', () => {
  const denial = { actorId: 5, operation: 'plans.edit', error: 'not_found', projectId: null, requestId: 'r1' }
  const deny = (change: object, by: DenialCounter) => by.count({ ...denial, ...change })
  const denials = (query: { actorId?: number; beforeId?: number }) =>
    db.read((tx) => listDenials(tx, { limit: 50, ...query }))

  test('are counted exactly once per actor, operation, error and minute, even when concurrent', async () => {
    // The clock is set to the start of a minute.
    const seconds = (await databaseNow(database)).getSeconds()
    const counter = new DenialCounter(await later(`1 day -${seconds} seconds`))
    await Promise.all(Array.from({ length: 50 }, () => deny({}, counter)))
    await deny({ projectId: 3, requestId: 'r2' }, counter)
    for (const change of [{ actorId: 6 }, { operation: 'plans.create' }, { error: 'in_use' }]) {
      await deny(change, counter)
    }
    const rows = await denials({ actorId: 5 })
    assert.deepEqual(
      rows.map(({ operation, error, project_id, count }) => [operation, error, project_id, count]),
      [
        ['plans.edit', 'in_use', null, 1],
        ['plans.create', 'not_found', null, 1],
        ['plans.edit', 'not_found', 3, 51],
      ],
    )
    assert.equal(rows[2]?.last_request_id, 'r2')
    assert.match(denialView(rows[0] ?? assert.fail()).minute, /:00\.000Z$/)
    const all = await denials({})
    assert.equal(all.length, 4)
    assert.deepEqual(
      (await denials({ beforeId: all[1]?.id ?? 0 })).map(({ id }) => id),
      all.slice(2).map(({ id }) => id),
    )
  })

  test('are kept for 90 days', async () => {
    const before = (await denials({})).length
    assert.equal(await (await later('89 days')).transaction(purgeDenials), 0)
    const muchLater = await later('91 days')
    await deny({}, new DenialCounter(muchLater))
    assert.equal(await muchLater.transaction(purgeDenials), before)
    assert.equal((await denials({})).length, 1)
  })
})
