import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)
const { id: projectId } = await makeProject()

const pathOf = (id: number) => `/projects/${projectId}/endpoints/${id}/test`
const outboxMessages = (id: number) =>
  database.query(
    `select from control.outbox where topic = 'endpoint.test' and payload = jsonb_build_object('endpoint_id', $1::bigint)`,
    [id],
  )

describe('endpoints.test', () => {
  test('writes an audit row and an outbox message to the mail side, and keeps the version', async () => {
    const { resource } = await makeEndpoint(projectId)
    const answer = await admin.post(pathOf(resource.id), { reason: 'Asked for' })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual(answer.body, { endpoint_id: resource.id, event_type: 'endpoint.test' })
    assert.equal(answer.headers.get('etag'), null)
    await assertAudited(answer, {
      operation: 'endpoints.test',
      project_id: projectId,
      resource: ['endpoint', resource.id],
      reason: 'Asked for',
      before: { is_test_requested: false },
      after: { is_test_requested: true },
    })
    assert.equal((await outboxMessages(resource.id)).length, 1)
    const shown = await admin.get(`/projects/${projectId}/endpoints/${resource.id}`)
    assert.deepEqual([shown.body, shown.headers.get('etag')], [resource, '"1"'])
  })

  test('requires neither a reason nor a body, and takes effect once per Idempotency-Key', async () => {
    const { resource } = await makeEndpoint(projectId)
    const headers = { 'idempotency-key': 'one-test' }
    assert.equal((await admin.post(pathOf(resource.id), undefined, headers)).status, 202)
    const again = await admin.post(pathOf(resource.id), undefined, headers)
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [202, 'true'])
    assert.equal((await outboxMessages(resource.id)).length, 1)
  })

  test('shows the URL in a preview, and sends nothing', async () => {
    const { resource } = await makeEndpoint(projectId)
    const stats =
      'insert into control.endpoint_stats (endpoint_id, project_id, consecutive_failures) values ($1, $2, 3)'
    await database.query(stats, [resource.id, projectId])
    const answer = await admin.post(`${pathOf(resource.id)}?dry_run=true`)
    assert.equal(answer.status, 200, answer.text)
    assert.match(answer.body.effects[0], /endpoint\.test is sent to https:\/\/hooks\.example\.com\/events/)
    assert.match(answer.body.warnings[0], /consecutive failures: 3/)
    assert.deepEqual(await outboxMessages(resource.id), [])
  })

  test('is rejected for an inactive endpoint, with a remedy', async () => {
    const { resource } = await makeEndpoint(projectId, { is_active: false })
    const answer = await admin.post(pathOf(resource.id), { reason: 'Asked for' })
    assertProblem(answer, 422, 'validation_failed')
    assert.match(answer.body.message, /"is_active" to true/)
    await assertNotAudited(answer)
    assert.deepEqual(await outboxMessages(resource.id), [])
  })

  test('is rate-limited per minute per endpoint', async () => {
    const strict = await startApi(database, { POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT: '2' })
    const { email } = await strict.makeAdmin()
    const client = new Client(strict.url, await strict.tokenOf(email))
    const [{ resource: one }, { resource: other }] = [
      await makeEndpoint(projectId),
      await makeEndpoint(projectId),
    ]
    for (const status of [202, 202, 429]) {
      const answer = await client.post(pathOf(one.id))
      assert.equal(answer.status, status, answer.text)
      if (status !== 429) continue
      assertProblem(answer, 429, 'rate_limited')
      assert.match(answer.body.message, /Too many test events for this endpoint: at most 2 per minute/)
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    assert.equal((await outboxMessages(one.id)).length, 2)
    assert.equal((await client.post(pathOf(other.id))).status, 202)
  })
})
