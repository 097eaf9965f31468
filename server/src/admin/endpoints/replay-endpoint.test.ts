import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relayToMail } from '../../core/outbox/relay-to-mail.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { makeEvent } = mailRows(database)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { id: projectId } = await makeProject()
const deps = { db: api.context.db.admin, mailDb: api.context.cells.all[0].mail }

const pathOf = (id: number) => `/projects/${projectId}/endpoints/${id}/replay`
const outboxMessages = async (id: number) => {
  const rows = await database.query<{ payload: { endpoint_id: number } }>(
    `select payload from control.outbox where topic = 'endpoint.replay'`,
  )
  return rows.map(({ payload }) => payload).filter(({ endpoint_id }) => endpoint_id === id)
}
const nothing = { event_id: null, from: null, to: null, only_undelivered: null }
const range = { from: '2026-01-01T01:00:00+01:00', to: '2026-01-02T00:00:00Z' }
const understood = {
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-01-02T00:00:00.000Z',
  only_undelivered: true,
}

describe('endpoints.replay', () => {
  test('of one event writes an audit row and an outbox message to the mail side', async () => {
    const { resource } = await makeEndpoint(projectId)
    const event_id = await makeEvent(projectId)
    const answer = await admin.post(pathOf(resource.id), { event_id, reason: 'Lost' })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(answer.body, { endpoint_id: resource.id, ...nothing, event_id })
    await assertAudited(answer, {
      operation: 'endpoints.replay',
      project_id: projectId,
      resource: ['endpoint', resource.id],
      reason: 'Lost',
      before: nothing,
      after: { ...nothing, event_id },
    })
    assert.deepEqual(await outboxMessages(resource.id), [{ endpoint_id: resource.id, event_id }])
    // Any number of sequential replays is allowed.
    assert.equal((await admin.post(pathOf(resource.id), { event_id })).status, 202)
  })

  test('of a time range skips delivered events by default', async () => {
    const { resource } = await makeEndpoint(projectId)
    const answer = await admin.post(pathOf(resource.id), range)
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(answer.body, { endpoint_id: resource.id, ...nothing, ...understood })
    assert.deepEqual(await outboxMessages(resource.id), [{ endpoint_id: resource.id, ...understood }])
    const { resource: other } = await makeEndpoint(projectId)
    const all = await admin.post(pathOf(other.id), { ...range, only_undelivered: false })
    assert.equal(all.body.only_undelivered, false)
  })

  test('of a time range is limited to one at a time, until it is finished', async () => {
    const { resource } = await makeEndpoint(projectId)
    const isRefused = async () => {
      const answer = await admin.post(pathOf(resource.id), range)
      assertProblem(answer, 409, 'request_in_progress')
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
      await assertNotAudited(answer)
    }
    const both = await Promise.all([
      admin.post(pathOf(resource.id), range),
      admin.post(pathOf(resource.id), range),
    ])
    assert.deepEqual(both.map(({ status }) => status).sort(), [202, 409])
    await isRefused()
    await relayToMail(deps)
    await isRefused()
    const event_id = await makeEvent(projectId)
    assert.equal(
      (await admin.post(pathOf(resource.id), { event_id })).status,
      202,
      'single events are still replayed',
    )
    await database.query('delete from mail.replays where endpoint_id = $1', [resource.id])
    assert.equal((await admin.post(pathOf(resource.id), range)).status, 202)
  })

  test('accepts exactly one event or one past time range within the retention', async () => {
    const { resource } = await makeEndpoint(projectId)
    const event_id = await makeEvent(projectId)
    const past = (ms: number) => new Date(Date.now() - ms).toISOString()
    for (const [body, message] of [
      [{}, /either one event/],
      [{ only_undelivered: true }, /either one event/],
      [{ from: range.from }, /either one event/],
      [{ to: range.to }, /either one event/],
      [{ event_id, ...range }, /either one event/],
      [{ event_id, from: range.from }, /either one event/],
      [{ event_id, only_undelivered: false }, /"only_undelivered" applies only to a time range/],
      [{ from: range.to, to: range.to }, /"from" must be before "to"/],
      [{ from: range.to, to: range.from }, /"from" must be before "to"/],
      [{ from: past(60_000), to: past(-60_000) }, /"to" must not be in the future/],
      [
        { from: past(400 * 86_400_000), to: past(1_000) },
        /longer than the \d+ days for which events are kept/,
      ],
      [{ from: '2026-02-30T00:00:00Z', to: range.to }, /"from"/],
      [{ from: '2026-01-01', to: range.to }, /"from"|"body\/from"|from/],
      [{ event_id: 'no uuid' }, /event_id/],
      [{ event_id: null }, /event_id/],
    ] as const) {
      const answer = await admin.post(pathOf(resource.id), body)
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, message)
      await assertNotAudited(answer)
    }
    assert.deepEqual(await outboxMessages(resource.id), [])
  })

  test("returns the same 404 for another project's event as for a missing one", async () => {
    const { resource } = await makeEndpoint(projectId)
    const { id: other } = await makeProject()
    const foreign = await makeEvent(other)
    const never = '00000000-0000-7000-8000-000000000000'
    const answers = [
      await admin.post(pathOf(resource.id), { event_id: foreign }),
      await admin.post(pathOf(resource.id), { event_id: never }),
    ]
    for (const answer of answers) assertProblem(answer, 404, 'not_found')
    assert.equal(answers[0]?.text.replace(foreign, never), answers[1]?.text)
  })

  test('is rejected for an inactive endpoint', async () => {
    const { resource } = await makeEndpoint(projectId, { is_active: false })
    for (const body of [range, { event_id: await makeEvent(projectId) }]) {
      const answer = await admin.post(pathOf(resource.id), body)
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /"is_active" to true/)
    }
  })

  test('describes its effect in a preview, and delivers nothing', async () => {
    const { resource } = await makeEndpoint(projectId)
    const event_id = await makeEvent(projectId)
    for (const [body, effect] of [
      [{ event_id }, new RegExp(`The event ${event_id} is delivered again`)],
      [range, /from 2026-01-01T00:00:00\.000Z to .*, except those already delivered\./],
      [{ ...range, only_undelivered: false }, /including those already delivered\./],
    ] as const) {
      const answer = await admin.post(`${pathOf(resource.id)}?dry_run=true`, body)
      assert.equal(answer.status, 200, answer.text)
      assert.match(answer.body.effects[0], effect)
    }
    assert.deepEqual(await outboxMessages(resource.id), [])
  })

  test('of single events is rate-limited per minute', async () => {
    const strict = await startApi(database, { POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT: '1' })
    const { email } = await strict.makeAdmin()
    const client = new Client(strict.url, await strict.tokenOf(email))
    const { resource } = await makeEndpoint(projectId)
    const event_id = await makeEvent(projectId)
    assert.equal((await client.post(pathOf(resource.id), { event_id })).status, 202)
    const answer = await client.post(pathOf(resource.id), { event_id })
    assertProblem(answer, 429, 'rate_limited')
    assert.ok(Number(answer.headers.get('retry-after')) > 0)
  })
})
