import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { inDays } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, make, ownProject, member, stranger, keyOf } = await customers(api, database)

/** Must not appear in anything that a customer reads. */
const reason = 'Canary: complaint by mallory@example.net'
const public_note = 'Please clean up your list.'

async function intervened(changes: object = {}) {
  const { owner, project } = await ownProject()
  const path = `/projects/${project.id}`
  const { id } = await make.makeIntervention(project.id, { kind: 'hold', public_note, reason, ...changes })
  return { owner, project, path, id, notice: `${path}/notices/${id}` }
}
type Intervened = Awaited<ReturnType<typeof intervened>>

const end = ({ path, id }: Intervened) => admin.post(`${path}/interventions/${id}/end`, { reason })
const idsOf = (answer: { body: { data: { id: number }[] } }) => answer.body.data.map(({ id }) => id)

describe('notices.list and notices.show', () => {
  test('show an intervention with its public fields only', async () => {
    const expires_at = inDays(2)
    const one = await intervened({ kind: 'pace', pace_per_hour: 500, expires_at })
    const shown = await one.owner.get(one.notice)
    assert.equal(shown.status, 200, shown.text)
    const { created_at, ...rest } = shown.body
    assert.deepEqual(rest, {
      id: one.id,
      kind: 'pace',
      public_note,
      pace_per_hour: 500,
      expires_at,
      ended_at: null,
      appeal: null,
    })
    assert.deepEqual((await one.owner.get(`${one.path}/notices`)).body, {
      data: [{ ...rest, created_at }],
      next_cursor: null,
    })
  })

  test('contain ended interventions, newest first, unless only those in force are requested', async () => {
    const one = await intervened()
    const second = await make.makeIntervention(one.project.id)
    await end(one)
    assert.deepEqual(idsOf(await one.owner.get(`${one.path}/notices`)), [second.id, one.id])
    assert.deepEqual(idsOf(await one.owner.get(`${one.path}/notices?in_force=true`)), [second.id])
    const ended = (await one.owner.get(one.notice)).body
    assert.equal(ended.ended_at, (await admin.get(`${one.path}/interventions/${one.id}`)).body.ended_at)
    const first = (await one.owner.get(`${one.path}/notices?limit=1`)).body
    const rest = await one.owner.get(`${one.path}/notices?limit=1&cursor=${first.next_cursor}`)
    assert.deepEqual(idsOf(rest), [one.id])
  })

  test('are readable by every member, and not by API keys or other customers', async () => {
    const one = await intervened()
    for (const role of ['admin', 'developer', 'viewer'] as const) {
      const someone = await member(one.project.id, role)
      assert.equal((await someone.get(`${one.path}/notices`)).status, 200)
      assert.equal((await someone.get(one.notice)).status, 200)
    }
    const key = await keyOf(one.project.id, ['messages:send', 'usage:read'])
    assertProblem(await key.get(one.notice), 403, 'insufficient_scope')
    assertProblem(await (await stranger()).get(one.notice), 404, 'not_found')
    const other = await intervened()
    assertProblem(await other.owner.get(`${other.path}/notices/${one.id}`), 404, 'not_found')
  })
})

describe('notices.appeal', () => {
  const text = 'We removed the list.\r\n\r\nPlease let us send again.'
  const stored = 'We removed the list.\n\nPlease let us send again.'

  test('is possible once, also in a locked project, and administrators see it', async () => {
    const one = await intervened({ kind: 'lock' })
    const answer = await one.owner.post(`${one.notice}/appeal`, { text })
    assert.equal(answer.status, 201, answer.text)
    const { created_at } = answer.body.appeal
    assert.deepEqual(answer.body.appeal, { text: stored, created_at })
    assert.equal(answer.headers.get('location'), `/v1${one.notice}`)
    assert.deepEqual((await one.owner.get(one.notice)).body, answer.body)

    const expected = { text: stored, user_id: one.owner.user.id, created_at }
    const path = `${one.path}/interventions`
    const seen = async () => (await admin.get(`${path}/${one.id}`)).body.appeal
    assert.deepEqual(await seen(), expected)
    assert.deepEqual((await admin.get(path)).body.data[0].appeal, expected)
    const edited = { pace_per_hour: null, public_note: null, expires_at: null, reason }
    assert.deepEqual((await admin.patch(`${path}/${one.id}`, edited)).body.appeal, expected)

    const manager = await member(one.project.id, 'admin')
    assertProblem(await manager.post(`${one.notice}/appeal`, { text: 'Again' }), 409, 'already_exists')
    assert.deepEqual((await end(one)).body.appeal, expected)
  })

  test('is accepted once if several members appeal at the same time', async () => {
    const one = await intervened()
    const answers = await Promise.all(
      Array.from({ length: 4 }, (_, n) => one.owner.post(`${one.notice}/appeal`, { text: `Text ${n}` })),
    )
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409, 409])
  })

  test('is rejected after the intervention has ended', async () => {
    const one = await intervened()
    await end(one)
    assertProblem(await one.owner.post(`${one.notice}/appeal`, { text }), 409, 'already_ended')
    assert.equal((await one.owner.get(one.notice)).body.appeal, null)
  })

  test('is for owners and admins of the project', async () => {
    const one = await intervened()
    for (const role of ['developer', 'viewer'] as const) {
      const someone = await member(one.project.id, role)
      assertProblem(await someone.post(`${one.notice}/appeal`, { text }), 403, 'insufficient_role')
    }
    const key = await keyOf(one.project.id, ['messages:send'])
    assertProblem(await key.post(`${one.notice}/appeal`, { text }), 403, 'insufficient_scope')
    const other = await intervened()
    const foreign = `${other.path}/notices/${one.id}/appeal`
    assertProblem(await other.owner.post(foreign, { text }), 404, 'not_found')
    const manager = await member(one.project.id, 'admin')
    assert.equal((await manager.post(`${one.notice}/appeal`, { text })).status, 201)
  })

  const wrong: [what: string, text: string][] = [
    ['an empty text', ''],
    ['an invisible text', ' \n\u200b '],
    ['a text that is too long', 'x'.repeat(2001)],
    ['a control character', 'a\u0007b'],
    ['a character that changes the text direction', 'a\u202eb'],
  ]
  for (const [what, bad] of wrong) {
    test(`rejects ${what}`, async () => {
      const one = await intervened()
      assertProblem(await one.owner.post(`${one.notice}/appeal`, { text: bad }), 422, 'validation_failed')
    })
  }

  test('is recorded in the activity', async () => {
    const one = await intervened()
    await one.owner.post(`${one.notice}/appeal`, { text })
    const [entry] = (await one.owner.get(`${one.path}/activity`)).body.data
    assert.deepEqual(
      [entry.operation, entry.resource_type, entry.resource_id, entry.actor.id],
      ['notices.appeal', 'notice', String(one.id), one.owner.user.id],
    )
  })
})

test("no customer reads the reason or the administrator's address", async () => {
  const one = await intervened()
  const explained = '/explain?from=a@example.com&to=b@example.net'
  const answers = [
    await one.owner.post(`${one.notice}/appeal`, { text: 'Why?' }),
    await one.owner.get(one.notice),
    await one.owner.get(`${one.path}/notices`),
    await one.owner.get(`${one.path}${explained}`),
    await one.owner.get(`${one.path}/activity`),
  ]
  await end(one)
  answers.push(await one.owner.get(one.notice))
  const events = await database.query<{ payload: object }>(
    'select payload from control.outbox where project_id = $1',
    [one.project.id],
  )
  assert.equal(events.length, 2)
  for (const { status, text } of answers) {
    assert.ok(status < 300, text)
    assert.ok(!text.includes('Canary') && !text.includes(admin.email), text)
  }
  const published = JSON.stringify(events)
  assert.ok(!published.includes('Canary') && !published.includes(admin.email), published)
})

test("the customers' role cannot read the reason of an intervention", async () => {
  const one = await intervened()
  const { customer } = api.context.db
  const read = (column: string) =>
    customer.forProject(one.project.id).read((tx) =>
      tx
        .selectFrom('control.interventions')
        .select(column as 'id')
        .execute(),
    )
  assert.equal((await read('ended_at')).length, 1)
  for (const column of ['reason', 'evidence', 'source', 'policy_id', 'ended_by']) {
    await assert.rejects(read(column), /permission denied/)
  }
})
