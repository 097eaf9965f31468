import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { makeEvent, makeAttempt } = mailRows(database)
const { id: projectId } = await makeProject()
const { resource } = await makeEndpoint(projectId)
const path = `/projects/${projectId}/endpoints/${resource.id}/attempts`

const event = await makeEvent(projectId)
const attempts: string[] = []
for (let n = 0; n < 7; n++) {
  const outcome = n === 6 ? 'delivered' : 'failed'
  const eventId = n < 2 ? event : await makeEvent(projectId)
  attempts.unshift(await makeAttempt(projectId, resource.id, eventId, { outcome, attempt: n + 1 }))
}
const { resource: neighbour } = await makeEndpoint(projectId)
await makeAttempt(projectId, neighbour.id, event)

const idsOf = async (query: string): Promise<string[]> => {
  const { status, body, text } = await admin.get(path + query)
  assert.equal(status, 200, text)
  return body.data.map(({ id }: { id: string }) => id)
}

describe('endpoints.attempts', () => {
  test('returns attempts with their responses, newest first', async () => {
    const { body } = await admin.get(path)
    assert.deepEqual(
      body.data.map(({ id }: { id: string }) => id),
      attempts,
    )
    assert.equal(body.next_cursor, null)
    const [first] = body.data
    assert.deepEqual(first, {
      id: attempts[0],
      endpoint_id: resource.id,
      event_id: first.event_id,
      event_type: 'domain.verified',
      attempt: 7,
      outcome: 'delivered',
      status: 200,
      latency_ms: 12,
      response: 'ok',
      error: null,
      created_at: first.created_at,
    })
    const ms = Number.parseInt(String(first.id).replaceAll('-', '').slice(0, 12), 16)
    assert.equal(first.created_at, new Date(ms).toISOString())
    assert.deepEqual([body.data[1].status, body.data[1].error], [null, 'The endpoint did not respond.'])
  })

  test('filters by event and by outcome', async () => {
    assert.deepEqual(await idsOf(`?event_id=${event}`), attempts.slice(-2))
    assert.deepEqual(await idsOf('?outcome=delivered'), attempts.slice(0, 1))
    assert.deepEqual(await idsOf(`?event_id=${event}&outcome=delivered`), [])
    assertProblem(await admin.get(`${path}?outcome=lost`), 400, 'invalid_parameter')
    assertProblem(await admin.get(`${path}?event_id=7`), 400, 'invalid_parameter')
  })

  test('paginates without gaps, with any filter', async () => {
    for (const [query, expected] of [
      ['', attempts],
      ['&outcome=failed', attempts.slice(1)],
    ] as const) {
      const found: string[] = []
      for (let cursor = ''; ; ) {
        const { body } = await admin.get(`${path}?limit=2${query}${cursor}`)
        assert.ok(body.data.length <= 2)
        found.push(...body.data.map(({ id }: { id: string }) => id))
        if (body.next_cursor === null) break
        cursor = `&cursor=${body.next_cursor}`
      }
      assert.deepEqual(found, expected)
    }
    assertProblem(await admin.get(`${path}?cursor=YWZ0ZXI6MQ`), 400, 'invalid_parameter')
  })

  test("returns the same 404 for another project's endpoint as for a missing one", async () => {
    const { id: other } = await makeProject()
    for (const elsewhere of [
      `/projects/${other}/endpoints/${resource.id}/attempts`,
      `/projects/${projectId}/endpoints/987654321/attempts`,
    ]) {
      assertProblem(await admin.get(elsewhere), 404, 'not_found')
    }
  })
})
