import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { inDays, senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeProject, claimedOf } = senders(api, database, admin)
const { makeMail } = mailRows(database)
const reason = 'Complaint by a recipient, ticket 4711'

const start = (path: string, body: object, query = '') =>
  admin.post(`${path}/interventions${query}`, { reason, ...body })
const restrictionOf = (projectId: number) =>
  database.query<{ kind: string; pace_per_hour: number | null }>(
    'select kind, pace_per_hour from control.queue_restrictions where project_id = $1',
    [projectId],
  )
const eventsOf = async (projectId: number) =>
  (
    await database.query<{ type: string }>(
      `select payload ->> 'type' as type from control.outbox where project_id = $1 and topic = 'event' order by id`,
      [projectId],
    )
  ).map(({ type }) => type)

describe('interventions.create', () => {
  test('locks a project until a time: one audit row, and the project changes with it', async () => {
    const sender = await makeSender()
    const before = await admin.get(sender.path)
    const expires_at = inDays(1)
    const note = 'Please contact us.'
    const answer = await start(sender.path, { kind: 'lock', public_note: note, expires_at })
    assert.equal(answer.status, 201, answer.text)
    const { id, created_at, updated_at, ...rest } = answer.body
    assert.deepEqual(rest, {
      project_id: sender.id,
      kind: 'lock',
      source: 'administrator',
      policy_id: null,
      started_by: { id: admin.userId, email: admin.email },
      reason,
      public_note: note,
      pace_per_hour: null,
      evidence: null,
      expires_at: new Date(expires_at).toISOString(),
      drains_before: null,
      ended_at: null,
      ended_by: null,
      appeal: null,
    })
    assert.equal(created_at, updated_at)
    assert.equal(answer.headers.get('location'), `/v1/admin${sender.path}/interventions/${id}`)
    assert.deepEqual((await admin.get(`${sender.path}/interventions/${id}`)).body, answer.body)

    const after = await admin.get(sender.path)
    const versionOf = ({ headers }: typeof after) => Number(headers.get('etag')?.replaceAll('"', ''))
    assert.deepEqual([after.body.is_locked, versionOf(after)], [true, versionOf(before) + 1])
    assert.deepEqual(await eventsOf(sender.id), ['project.intervened', 'project.locked'])
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [row.operation, row.reason, row.before, (row.after as { kind: string }).kind],
      ['interventions.create', reason, null, 'lock'],
    )
    const [related] = (row.related ?? []) as {
      resource: string
      before: object
      after: { is_locked: boolean }
    }[]
    assert.deepEqual([related?.resource, related?.after.is_locked], ['project', true])
  })

  test('holds, paces and warns; the strictest applies', async () => {
    const sender = await makeSender()
    const id = await sender.send()
    await start(sender.path, { kind: 'warn' })
    assert.deepEqual(await restrictionOf(sender.id), [])
    await start(sender.path, { kind: 'pace', pace_per_hour: 900 })
    await start(sender.path, { kind: 'pace', pace_per_hour: 60 })
    assert.deepEqual(await restrictionOf(sender.id), [{ kind: 'pace', pace_per_hour: 60 }])
    assert.equal((await admin.get(`${sender.path}/messages/${id}`)).body.status, 'queued')
    await start(sender.path, { kind: 'hold' })
    assert.deepEqual(await restrictionOf(sender.id), [{ kind: 'hold', pace_per_hour: null }])
    assert.equal((await admin.get(`${sender.path}/messages/${id}`)).body.status, 'held')
    assert.deepEqual(await claimedOf(sender.id), [])
    assert.equal((await admin.get(sender.path)).body.is_locked, false)
  })

  const wrong: [what: string, body: object, message: RegExp][] = [
    ['a pace without a number', { kind: 'pace' }, /"pace_per_hour" is required/],
    ['a number for a hold', { kind: 'hold', pace_per_hour: 5 }, /only to a pace/],
    ['a past expiry', { kind: 'hold', expires_at: '2020-01-01T00:00:00Z' }, /in the past/],
    ['an expiry in two years', { kind: 'hold', expires_at: inDays(730) }, /more than 366 days/],
    ['a note of two lines', { kind: 'warn', public_note: 'a\nb' }, /line breaks/],
  ]
  for (const [what, body, message] of wrong) {
    test(`rejects ${what}`, async () => {
      const { path } = await makeSender()
      const answer = await start(path, body)
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, message)
    })
  }

  test('requires a reason', async () => {
    const { path } = await makeSender()
    assertProblem(await admin.post(`${path}/interventions`, { kind: 'warn' }), 422, 'reason_required')
  })

  test('allows 20 in force', async () => {
    const { id } = await makeProject()
    const path = `/projects/${id}`
    for (let n = 0; n < 20; n++) assert.equal((await start(path, { kind: 'warn' })).status, 201)
    assertProblem(await start(path, { kind: 'warn' }), 422, 'limit_exceeded')
    const until = { is_locked: true, expires_at: inDays(1), reason }
    assertProblem(await admin.patch(path, until), 422, 'limit_exceeded')
    // An emergency stop is always possible.
    assert.equal((await admin.patch(path, { is_locked: true, reason })).status, 200)
    assert.equal((await admin.post(`${path}/queue/hold`, { reason })).status, 200)
  })

  test('previews how long a pace takes, and what fails', async () => {
    const { id } = await makeProject()
    for (let n = 0; n < 4; n++) await makeMail(id, { status: 'queued', dispatch: 'ready' })
    await makeMail(id, { status: 'queued', dispatch: 'leased' })
    const { body } = await start(`/projects/${id}`, { kind: 'pace', pace_per_hour: 1 }, '?dry_run=true')
    assert.deepEqual(body.effects, [
      'Sending is limited to 1 recipient per hour until an administrator ends it. New mail is accepted. Queued messages: 4.',
    ])
    assert.deepEqual(body.warnings, ['Messages being sent now that cannot be stopped: 1.'])
    await database.query(
      `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
       select postern.uuid7(postern.now()), 0, $1, 1, 'service', 'a@example.com' from generate_series(1, 200)`,
      [id],
    )
    const long = await start(`/projects/${id}`, { kind: 'pace', pace_per_hour: 1 }, '?dry_run=true')
    assert.equal(
      long.body.warnings[0],
      '204 queued recipients at 1 per hour take 9 days. Recipients that wait longer than 7 days fail.',
    )
    assert.deepEqual(await restrictionOf(id), [])
  })
})

describe('projects.edit with is_locked', () => {
  test('starts a lock without expiry, also if one that expires is in force', async () => {
    const { path, id } = await makeSender()
    await start(path, { kind: 'lock', expires_at: inDays(1) })
    const version = (await admin.get(path)).headers.get('etag')
    const answer = await admin.patch(path, { is_locked: true, reason })
    assert.deepEqual([answer.status, answer.headers.get('etag')], [200, version])
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual(
      [row.operation, row.before, (row.after as { kind: string }).kind],
      ['projects.edit', null, 'lock'],
    )
    assert.deepEqual(await eventsOf(id), ['project.intervened', 'project.locked', 'project.intervened'])
    const again = await admin.patch(path, { is_locked: true, reason })
    assert.equal(await auditRowOf(database, again), undefined)
    const withoutReason = await admin.patch((await makeSender()).path, { is_locked: true })
    assertProblem(withoutReason, 422, 'reason_required')
  })

  test('ends all locks with false', async () => {
    const { path, id } = await makeSender()
    await start(path, { kind: 'lock', expires_at: inDays(1) })
    await admin.patch(path, { is_locked: true, reason })
    const answer = await admin.patch(path, { is_locked: false, name: 'Renamed', reason })
    assert.equal(answer.body.is_locked, false)
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.equal((row.related as unknown[]).length, 2)
    const { data } = (await admin.get(`${path}/interventions?in_force=true`)).body
    assert.deepEqual(data, [])
    const all = (await admin.get(`${path}/interventions`)).body.data
    assert.deepEqual(
      all.map(({ ended_by }: { ended_by: string }) => ended_by),
      ['administrator', 'administrator'],
    )
    assert.deepEqual((await eventsOf(id)).slice(3), [
      ...['project.reinstated', 'project.reinstated', 'project.unlocked'],
    ])
  })
})
