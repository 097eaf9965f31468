import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeRoute } = fixtures(database, admin)
const { assertAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const path = `/projects/${projectId}/routing`
const ask = (id: number) =>
  admin.post(`${path}/${id}/request-confirmation`, { reason: 'The mail was deleted' })
const waiting = () =>
  database.query<{ address: string; round: number; is_sent: boolean }>(
    `select address, round, sent_at is not null as is_sent from control.forward_confirmations where project_id = $1`,
    [projectId],
  )

describe('routing.request-confirmation', () => {
  test('sends a new confirmation link, and keeps the version', async () => {
    const route = await makeRoute(projectId, { action: 'forward', forward_to: 'Ada@example.net' })
    await database.query('update control.forward_confirmations set sent_at = now()')
    const answer = await ask(route.id)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, route)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.deepEqual(await waiting(), [{ address: 'ada@example.net', round: 2, is_sent: false }])
    const about = { domain_id: route.domain_id, address: null, forward_to: 'Ada@example.net' }
    await assertAudited(answer, {
      operation: 'routing.request-confirmation',
      project_id: projectId,
      resource: ['route', route.id],
      reason: 'The mail was deleted',
      before: { ...about, confirmation_mail: 1 },
      after: { ...about, confirmation_mail: 2 },
    })
  })

  test('sends nothing for a route that does not forward, or whose target has confirmed', async () => {
    const rejecting = await makeRoute(projectId)
    const forwarding = await makeRoute(projectId, { action: 'forward', forward_to: 'grace@example.net' })
    await database.query('update control.routes set forward_confirmed_at = now() where id = $1', [
      forwarding.id,
    ])
    const before = await waiting()
    assert.deepEqual([(await ask(rejecting.id)).status, (await ask(forwarding.id)).status], [200, 200])
    assert.deepEqual(await waiting(), before)
  })

  test("returns 404 for a missing route or another project's route", async () => {
    const other = await makeProject()
    const theirs = await makeRoute(other.id)
    assertProblem(await ask(theirs.id), 404, 'not_found')
    assertProblem(await ask(999_999_999), 404, 'not_found')
  })
})
