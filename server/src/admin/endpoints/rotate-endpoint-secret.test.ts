import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertKeptNowhere, livingSecret } from '../../testing/expectations/endpoint-secrets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeEndpoint } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'The receiver was compromised'
const { id: projectId } = await makeProject()
const rotate = (id: number, body: object | undefined = { reason }, project = projectId) =>
  admin.post(`/projects/${project}/endpoints/${id}/rotate`, body)

describe('endpoints.rotate', () => {
  test('creates a new secret and removes the old one', async () => {
    const { resource: before, secret: old } = await makeEndpoint(projectId)
    const answer = await rotate(before.id)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
    const { resource, secret } = answer.body
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.notEqual(secret, old)
    assert.deepEqual(resource, {
      ...before,
      secret_hint: secret.slice(-5, -1),
      secret_rotated_at: resource.updated_at,
      updated_at: resource.updated_at,
    })
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.equal(await livingSecret(database, api, before), secret)
    await assertAudited(answer, {
      operation: 'endpoints.rotate',
      project_id: projectId,
      resource: ['endpoint', before.id],
      reason,
      before: { ...endpointConfiguration, secret_hint: old.slice(-5, -1) },
      after: { ...endpointConfiguration, secret_hint: secret.slice(-5, -1) },
    })
    await assertKeptNowhere(database, api, old)
    await assertKeptNowhere(database, api, secret)
  })

  test('rotates the secret of an inactive endpoint, which stays inactive', async () => {
    const { resource } = await makeEndpoint(projectId, { is_active: false })
    assert.equal((await rotate(resource.id)).body.resource.is_active, false)
  })

  test('requires a reason; without it, the old secret stays valid', async () => {
    const { resource, secret } = await makeEndpoint(projectId)
    const path = `/projects/${projectId}/endpoints/${resource.id}/rotate`
    for (const answer of [await admin.post(path, {}), await admin.post(path)]) {
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assertProblem(await rotate(resource.id, { reason: ' ' }), 422, 'validation_failed')
    assertProblem(await rotate(resource.id, { reason, secret: 'whsec_mine' }), 422, 'validation_failed')
    assert.equal(await livingSecret(database, api, resource), secret)
  })

  test('writes twenty audit rows and leaves one valid secret for twenty concurrent requests', async () => {
    const { resource, secret: first } = await makeEndpoint(projectId)
    const answers = await Promise.all(Array.from({ length: 20 }, () => rotate(resource.id)))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const secrets: string[] = answers.map(({ body }) => body.secret)
    assert.equal(new Set([first, ...secrets]).size, 21)

    const living = await livingSecret(database, api, resource)
    const last = answers.filter(({ body }) => body.secret === living)
    assert.deepEqual(
      last.map(({ headers }) => headers.get('etag')),
      ['"21"'],
    )
    const shown = (await admin.get(`/projects/${projectId}/endpoints/${resource.id}`)).body
    assert.equal(shown.secret_hint, living.slice(-5, -1))
    const etags = answers.map(({ headers }) => Number(headers.get('etag')?.slice(1, -1)))
    assert.deepEqual(
      etags.sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, n) => n + 2),
    )

    const rows = await database.query<{ before: { secret_hint: string }; after: { secret_hint: string } }>(
      `select before, after from control.audit
        where operation = 'endpoints.rotate' and resource_id = $1 order by seq`,
      [String(resource.id)],
    )
    assert.equal(rows.length, 20)
    // Each row starts with the state in which the previous row ended.
    const hints = [first.slice(-5, -1), ...rows.map(({ after }) => after.secret_hint)]
    assert.deepEqual(
      rows.map(({ before }) => before.secret_hint),
      hints.slice(0, -1),
    )
    assert.equal(hints.at(-1), living.slice(-5, -1))
  })

  test("returns the same 404 for another project's endpoint as for a missing one", async () => {
    const { resource, secret } = await makeEndpoint(projectId)
    const other = await makeProject()
    for (const answer of [
      await rotate(resource.id, { reason }, other.id),
      await rotate(resource.id, { reason }, 999_999_999),
      await rotate(999_999_999),
    ]) {
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.equal(await livingSecret(database, api, resource), secret)
  })
})
