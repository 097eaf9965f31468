import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { authenticateApiKey, findIn } from '../../core/control/api-keys/authenticate.ts'
import { assertKeyKeptNowhere } from '../../testing/expectations/api-key-secrets.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { apiKeyConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeApiKey } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'The secret was found in a public repository'
const { id: projectId } = await makeProject()
const rotate = (id: number, body: object | undefined = { reason }, project = projectId) =>
  admin.post(`/projects/${project}/api-keys/${id}/rotate`, body)
const opens = (secret: string): Promise<boolean> =>
  api.context.db.admin
    .read((tx) => authenticateApiKey(findIn(tx), secret, '192.0.2.7'))
    .then(
      () => true,
      () => false,
    )

describe('api-keys.rotate', () => {
  test('creates a new secret of the same mode and removes the old one', async () => {
    for (const mode of ['live', 'test'] as const) {
      const { resource: before, secret: old } = await makeApiKey(projectId, { mode })
      assert.ok(await opens(old))
      const answer = await rotate(before.id)
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
      const { resource, secret } = answer.body
      assert.match(secret, new RegExp(`^pk_${mode}_[0-9A-Za-z]{49}$`))
      const prefix = secret.slice(0, 12)
      assert.deepEqual(resource, { ...before, prefix, updated_at: resource.updated_at })
      assert.equal(answer.headers.get('etag'), '"2"')
      assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/api-keys/${before.id}`)
      assert.deepEqual([await opens(old), await opens(secret)], [false, true])
      await assertAudited(answer, {
        operation: 'api-keys.rotate',
        project_id: projectId,
        resource: ['api_key', before.id],
        reason,
        before: { ...apiKeyConfiguration, mode, prefix: old.slice(0, 12) },
        after: { ...apiKeyConfiguration, mode, prefix },
      })
      for (const kept of [old, secret]) {
        await assertKeyKeptNowhere(database, api, kept)
        assertProblem(await new Client(api.url, kept).get('/projects'), 403, 'api_key_not_allowed')
      }
    }
  })

  test('rotates an inactive key, which stays inactive, and reports that it is inactive', async () => {
    const { resource } = await makeApiKey(projectId, { is_active: false })
    const preview = await admin.post(`/projects/${projectId}/api-keys/${resource.id}/rotate?dry_run=true`, {})
    assert.match(preview.body.effects.join(), /The key is inactive/)
    const { body } = await rotate(resource.id)
    assert.equal(body.resource.is_active, false)
    assert.ok(!(await opens(body.secret)))
  })

  test('requires a reason; without it, the old secret stays valid', async () => {
    const { resource, secret } = await makeApiKey(projectId)
    const path = `/projects/${projectId}/api-keys/${resource.id}/rotate`
    for (const answer of [await admin.post(path, {}), await admin.post(path)]) {
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    assertProblem(await rotate(resource.id, { reason: ' ' }), 422, 'validation_failed')
    assertProblem(await rotate(resource.id, { reason, mode: 'test' }), 422, 'validation_failed')
    assert.ok(await opens(secret))
  })

  test('keeps the secret in a preview, and warns that the key is in use', async () => {
    const { resource, secret } = await makeApiKey(projectId)
    const path = `/projects/${projectId}/api-keys/${resource.id}/rotate?dry_run=true`
    assert.deepEqual((await admin.post(path, {})).body.warnings, [])
    await database.query(
      `insert into control.api_key_stats (api_key_id, project_id, last_used_at)
       values ($1, $2, '2026-11-14 09:30:00+00')`,
      [resource.id, projectId],
    )
    assert.deepEqual((await admin.post(path, {})).body.warnings, [
      'The key was last used at 2026-11-14T09:30:00.000Z: applications are rejected until they use the new secret.',
    ])
    assert.ok(await opens(secret))
  })

  test('writes twenty audit rows and leaves one valid secret for twenty concurrent requests', async () => {
    const { resource, secret: first } = await makeApiKey(projectId)
    const answers = await Promise.all(Array.from({ length: 20 }, () => rotate(resource.id)))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const secrets: string[] = answers.map(({ body }) => body.secret)
    assert.equal(new Set([first, ...secrets]).size, 21)
    const living: string[] = []
    for (const secret of [first, ...secrets]) if (await opens(secret)) living.push(secret)
    const last = answers.find(({ headers }) => headers.get('etag') === '"21"') ?? assert.fail()
    assert.deepEqual(living, [last.body.secret])
    const rows = await database.query<{ before: { prefix: string }; after: { prefix: string } }>(
      `select before, after from control.audit
        where operation = 'api-keys.rotate' and resource_id = $1 order by seq`,
      [String(resource.id)],
    )
    assert.equal(rows.length, 20)
    // Each row starts with the state in which the previous row ended.
    const prefixes = [first.slice(0, 12), ...rows.map(({ after }) => after.prefix)]
    assert.deepEqual(
      rows.map(({ before }) => before.prefix),
      prefixes.slice(0, -1),
    )
  })

  test("returns the same 404 for another project's key as for a missing one", async () => {
    const { resource, secret } = await makeApiKey(projectId)
    const other = await makeProject()
    for (const answer of [
      await rotate(resource.id, { reason }, other.id),
      await rotate(resource.id, { reason }, 999_999_999),
      await rotate(999_999_999),
    ]) {
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.ok(await opens(secret))
  })
})
