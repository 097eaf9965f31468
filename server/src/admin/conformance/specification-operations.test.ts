import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { endpointConfiguration, fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/**
 * The parameters, effects and responses of each operation. The fields of resources are tested in
 * specification-resources.test.ts.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember, makeEndpoint, makeRouteTo } = fixtures(database, admin)
const project = await makeProject()

const pathOf = ({ project_id, id }: { project_id: number; id: number }) =>
  `/projects/${project_id}/endpoints/${id}`

/** The stored secret, decrypted with the vault. */
async function storedSecret(id: number): Promise<string> {
  const [row] = await database.query<{ encrypted_secret: Buffer }>(
    'select encrypted_secret from control.endpoints where id = $1',
    [id],
  )
  const place = { table: 'control.endpoints', column: 'encrypted_secret', rowId: id }
  const sealed = row?.encrypted_secret ?? assert.fail('there is no such endpoint')
  return api.context.db.admin.read((tx) => api.context.vault.open(tx, project.id, place, sealed))
}

describe('endpoints.delete', () => {
  test('accepts the reason in its body and returns an empty one without content headers', async () => {
    const { resource } = await makeEndpoint(project.id)

    const answer = await admin.delete(pathOf(resource), { reason })

    assert.deepEqual([answer.status, answer.text], [204, ''])
    // RFC 9110 §8.6 and RFC 9112 §6.1: a 204 response has neither Content-Length nor Transfer-Encoding.
    for (const name of ['content-length', 'content-type', 'transfer-encoding', 'etag', 'location']) {
      assert.equal(answer.headers.get(name), null, name)
    }
  })

  test('deletes the endpoint, and returns 404 the second time', async () => {
    const { resource } = await makeEndpoint(project.id)
    assert.equal((await admin.delete(pathOf(resource), { reason })).status, 204)
    assertProblem(await admin.get(pathOf(resource)), 404, 'not_found')
    assertProblem(await admin.delete(pathOf(resource), { reason }), 404, 'not_found')
  })

  test('deletes nothing without a reason', async () => {
    const { resource } = await makeEndpoint(project.id)
    assertProblem(await admin.delete(pathOf(resource), {}), 422, 'reason_required')
    assertProblem(await admin.delete(pathOf(resource)), 422, 'reason_required')
    assert.equal((await admin.get(pathOf(resource))).status, 200)
  })

  test('is rejected while a route refers to the endpoint', async () => {
    const { resource } = await makeEndpoint(project.id)
    const route = await makeRouteTo(project.id, resource.id)
    const answer = await admin.delete(pathOf(resource), { reason })
    assertProblem(answer, 409, 'in_use')
    assert.match(answer.body.message, new RegExp(`\\b${route.id}\\b`))
  })
})

describe('endpoints.edit', () => {
  const complete = {
    name: 'Renamed',
    url: 'https://other.example.com/',
    events: ['inbound.received'],
    is_active: false,
  }

  test('accepts the complete configuration and returns the endpoint', async () => {
    const { resource } = await makeEndpoint(project.id)
    const answer = await admin.patch(pathOf(resource), complete)
    assert.equal(answer.status, 200)
    const { updated_at } = answer.body
    assert.deepEqual(answer.body, { ...resource, ...complete, updated_at })
    assert.deepEqual((await admin.get(pathOf(resource))).body, answer.body)
  })

  for (const field of ['name', 'url', 'events', 'is_active']) {
    test(`is rejected without "${field}", and changes nothing`, async () => {
      const { resource } = await makeEndpoint(project.id)
      const { [field]: _, ...partial } = complete as Record<string, unknown>
      const answer = await admin.patch(pathOf(resource), { ...partial, reason })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.match(answer.body.message, new RegExp(`lacks "${field}"\\.`))
      assert.deepEqual((await admin.get(pathOf(resource))).body, resource)
    })
  }

  test('names every missing field', async () => {
    const { resource } = await makeEndpoint(project.id)
    const answer = await admin.patch(pathOf(resource), { name: 'Renamed' })
    assertProblem(answer, 422, 'incomplete_configuration')
    assert.match(answer.body.message, /lacks "url", "events", "is_active"\./)
  })
})

describe('endpoints.rotate', () => {
  test('requires a reason and returns the endpoint and its new secret', async () => {
    const { resource, secret } = await makeEndpoint(project.id)
    const answer = await admin.post(`${pathOf(resource)}/rotate`, { reason })

    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
    assert.match(answer.body.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.notEqual(answer.body.secret, secret)
    assert.equal(answer.body.resource.secret_hint, answer.body.secret.slice(-5, -1))
    assert.deepEqual((await admin.get(pathOf(resource))).body, answer.body.resource)
  })

  test('is rejected without a reason, and the secret does not change', async () => {
    const { resource, secret } = await makeEndpoint(project.id)
    assertProblem(await admin.post(`${pathOf(resource)}/rotate`, {}), 422, 'reason_required')
    assertProblem(await admin.post(`${pathOf(resource)}/rotate`), 422, 'reason_required')
    assert.equal(await storedSecret(resource.id), secret)
  })

  test('invalidates the previous secret: only the new one is used for signing', async () => {
    const { resource, secret } = await makeEndpoint(project.id)
    assert.equal(await storedSecret(resource.id), secret)
    const { body } = await admin.post(`${pathOf(resource)}/rotate`, { reason })
    assert.equal(await storedSecret(resource.id), body.secret)
  })

  test('returns the secret once: no other response, audit row or log line contains it', async () => {
    const created = await makeEndpoint(project.id)
    const path = pathOf(created.resource)
    const key = { 'idempotency-key': 'rotation-1' }
    const rotated = await admin.post(`${path}/rotate`, { reason }, key)

    const repeated = await admin.post(`${path}/rotate`, { reason }, key)
    assertProblem(repeated, 409, 'secret_already_revealed')
    const edited = await admin.patch(path, { ...endpointConfiguration, name: 'Renamed' })
    const later = [
      repeated,
      edited,
      await admin.get(path),
      await admin.get(`/projects/${project.id}/endpoints`),
      await admin.post(`${path}/rotate?dry_run=true`, { reason }),
    ].map(({ text }) => text)
    const audit = await database.query<{ row: string }>('select audit::text as row from control.audit')
    const stored = await database.query<{ row: string }>(
      'select idempotency::text as row from control.idempotency',
    )
    assert.ok(stored.length > 0 && api.logLines.length > 0)
    const everywhere = [...later, ...[...audit, ...stored].map(({ row }) => row), ...api.logLines].join('\n')
    for (const secret of [created.secret, rotated.body.secret]) {
      assert.ok(!everywhere.includes(secret.slice('whsec_'.length)))
    }
  })
})

describe('endpoints.create', () => {
  test('creates an endpoint and returns it with its secret', async () => {
    const answer = await admin.post(`/projects/${project.id}/endpoints`, endpointConfiguration)
    const { resource, secret } = answer.body
    assert.equal(answer.status, 201)
    assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(await storedSecret(resource.id), secret)
    assert.deepEqual((await admin.get(pathOf(resource))).body, resource)
    assert.deepEqual({ ...resource, ...endpointConfiguration }, resource)
  })
})

describe('projects.edit', () => {
  test('accepts any of its fields and returns the project', async () => {
    const before = await makeProject()
    const plan = await makePlan()
    const body = {
      name: 'Renamed',
      user_id: (await makeUser()).id,
      reputation_score: 40,
      is_locked: true,
      allow_service_mta: true,
      plan_id: (await makePlan()).id,
      admin_plan_id: plan.id,
      admin_subscription_status: 'paused',
    }
    const answer = await admin.patch(`/projects/${before.id}`, { ...body, reason })
    assert.equal(answer.status, 200)
    const { updated_at } = answer.body
    assert.deepEqual(answer.body, { ...before, ...body, plan, updated_at })
    assert.deepEqual((await admin.get(`/projects/${before.id}`)).body, answer.body)
  })

  for (const [field, value] of Object.entries({
    id: 7,
    bounced: 0,
    created_at: '2026-11-14T09:30:00.000Z',
  })) {
    test(`rejects "${field}", which administrators cannot set`, async () => {
      assertProblem(
        await admin.patch(`/projects/${project.id}`, { [field]: value, reason }),
        422,
        'validation_failed',
      )
    })
  }
})

describe('members.create', () => {
  test('accepts an address and a role and returns the member', async () => {
    const body = { email: 'grace@example.net', role: 'developer' }
    const answer = await admin.post(`/projects/${project.id}/members`, body)
    assert.equal(answer.status, 201)
    assert.deepEqual({ ...answer.body, ...body, project_id: project.id }, answer.body)
    const shown = await admin.get(`/projects/${project.id}/members/${answer.body.id}`)
    assert.deepEqual(shown.body, answer.body)
  })
})

describe('members.edit and members.delete', () => {
  test('change the role, and remove the member with a reason', async () => {
    const member = await makeMember(project.id)
    const path = `/projects/${project.id}/members/${member.id}`
    const edited = await admin.patch(path, { role: 'viewer' })
    assert.deepEqual([edited.status, edited.body.role], [200, 'viewer'])
    const deleted = await admin.delete(path, { reason })
    assert.deepEqual([deleted.status, deleted.text], [204, ''])
    assertProblem(await admin.get(path), 404, 'not_found')
  })
})

describe('plans.create and plans.edit', () => {
  test('accept the complete plan, then any of its fields, and return it', async () => {
    const created = await admin.post('/plans', planConfiguration)
    assert.equal(created.status, 201)
    assert.deepEqual({ ...created.body, ...planConfiguration }, created.body)
    const { id } = created.body
    const changes = { support_level: 'priority', max_users: 7, price: 19.99, billing_product_id: 'prod_7' }
    const edited = await admin.patch(`/plans/${id}`, changes)
    assert.equal(edited.status, 200)
    const { updated_at } = edited.body
    assert.deepEqual(edited.body, { ...created.body, ...changes, updated_at })
    assert.deepEqual((await admin.get(`/plans/${id}`)).body, edited.body)
  })

  for (const field of Object.keys(planConfiguration)) {
    test(`a plan is not created without "${field}"`, async () => {
      const { [field]: _, ...partial } = planConfiguration as unknown as Record<string, unknown>
      assertProblem(await admin.post('/plans', partial), 422, 'validation_failed')
    })
  }
})

describe('projects.set-billing', () => {
  const billing = {
    billing_subscription_id: 'sub_1',
    billing_subscription_status: 'past_due',
    billing_product_id: 'prod_1',
  }

  test('requires all three fields and returns the project', async () => {
    const before = await makeProject()
    const answer = await admin.put(`/projects/${before.id}/billing`, billing)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { ...before, ...billing, updated_at: answer.body.updated_at })
  })

  for (const field of Object.keys(billing)) {
    test(`is rejected without "${field}", and changes nothing`, async () => {
      const before = await makeProject()
      const { [field]: _, ...partial } = billing as Record<string, unknown>
      const answer = await admin.put(`/projects/${before.id}/billing`, partial)
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.match(answer.body.message, new RegExp(`lacks "${field}"\\.`))
      assert.deepEqual((await admin.get(`/projects/${before.id}`)).body, before)
    })
  }
})

describe('users.edit', () => {
  test('accepts the role, the rights, the active flag and the revocation of sessions, with a reason, and returns the user', async () => {
    const { id } = await makeUser()
    const before = await admin.get(`/users/${id}`)
    const body = { role: 'admin', rights: 'support', is_active: false, end_sessions: true }
    assertProblem(await admin.patch(`/users/${id}`, body), 422, 'reason_required')
    const answer = await admin.patch(`/users/${id}`, { ...body, reason })
    assert.equal(answer.status, 200)
    const { updated_at } = answer.body
    assert.deepEqual(answer.body, {
      ...before.body,
      ...{ role: 'admin', rights: 'support', is_active: false, updated_at },
    })
    assert.equal((await auditRowOf(database, answer))?.reason, reason)
  })
})
