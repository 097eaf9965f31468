import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { apiKeyScopes } from '../../core/control/api-keys/scopes.ts'
import { assertKeyKeptNowhere } from '../../testing/expectations/api-key-secrets.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { apiKeyConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const create = (change: object = {}) =>
  admin.post(`/projects/${projectId}/api-keys`, { mode: 'live', ...apiKeyConfiguration, ...change })
const preview = async (change: object) => {
  const body = { mode: 'live', ...apiKeyConfiguration, ...change }
  const answer = await admin.post(`/projects/${projectId}/api-keys?dry_run=true`, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body as {
    effects: string[]
    warnings: string[]
    changes: { field: string; after: unknown }[]
  }
}
const countKeys = async (): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from control.api_keys'))[0]?.n ?? 0

async function assertRefused(change: object, message: RegExp): Promise<void> {
  const before = await countKeys()
  const answer = await create(change)
  assertProblem(answer, 422, 'validation_failed')
  assert.match(answer.body.message, message, JSON.stringify(change))
  await assertNotAudited(answer)
  assert.equal(await countKeys(), before)
}

describe('api-keys.create', () => {
  test('creates a key of either mode and returns its secret once', async () => {
    for (const mode of ['live', 'test'] as const) {
      const answer = await create({ mode })
      assert.equal(answer.status, 201, answer.text)
      assert.deepEqual(Object.keys(answer.body), ['resource', 'secret'])
      const { resource, secret } = answer.body
      const { id, created_at, updated_at } = resource
      assert.match(secret, new RegExp(`^pk_${mode}_[0-9A-Za-z]{49}$`))
      const { name, ...rest } = apiKeyConfiguration
      const prefix = secret.slice(0, 12)
      assert.deepEqual(resource, {
        id,
        project_id: projectId,
        name,
        prefix,
        ...rest,
        last_used_at: null,
        created_at,
        updated_at,
      })
      assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/api-keys/${id}`)
      assert.equal(answer.headers.get('etag'), '"1"')
      await assertAudited(answer, {
        operation: 'api-keys.create',
        project_id: projectId,
        resource: ['api_key', id],
        after: { name, mode, prefix, ...rest },
      })
      const [row] = await database.query<{ secret_hash: Buffer; is_test: boolean }>(
        'select secret_hash, is_test from control.api_keys where id = $1',
        [id],
      )
      assert.deepEqual(row?.secret_hash, createHash('sha256').update(secret).digest())
      assert.equal(row?.is_test, mode === 'test')
      await assertKeyKeptNowhere(database, api, secret)
      assertProblem(await new Client(api.url, secret).get('/projects'), 403, 'api_key_not_allowed')
    }
  })

  test('generates a different secret for each key, even with the same configuration', async () => {
    const secrets = await Promise.all(Array.from({ length: 8 }, async () => (await create()).body.secret))
    assert.equal(new Set(secrets).size, 8)
  })

  test('is active by default, and records the reason', async () => {
    assert.equal((await create({ is_active: undefined })).body.resource.is_active, true)
    const asleep = await create({ is_active: false, reason: 'Switched on next week' })
    const { id, prefix, is_active } = asleep.body.resource
    assert.equal(is_active, false)
    await assertAudited(asleep, {
      operation: 'api-keys.create',
      project_id: projectId,
      resource: ['api_key', id],
      reason: 'Switched on next week',
      after: { ...apiKeyConfiguration, mode: 'live', prefix, is_active: false },
    })
  })

  test('stores every field in its canonical form', async () => {
    const { body } = await create({
      name: '  Shop ',
      scopes: ['usage:read', 'messages:send'],
      allowed_ips: ['2001:DB8:0::/32', '192.0.2.7/32'],
      expires_at: '2099-12-31T23:00:00.1239-01:30',
    })
    const { name, scopes, allowed_ips, expires_at } = body.resource
    assert.deepEqual(
      { name, scopes, allowed_ips, expires_at },
      {
        name: 'Shop',
        scopes: ['messages:send', 'usage:read'],
        allowed_ips: ['2001:db8::/32', '192.0.2.7'],
        expires_at: '2100-01-01T00:30:00.123Z',
      },
    )
  })

  test('accepts one or more of the known scopes, none of which covers keys or members', async () => {
    assert.deepEqual((await create({ scopes: apiKeyScopes })).body.resource.scopes, apiKeyScopes)
    for (const scopes of [
      [],
      ['messages:send', 'messages:send'],
      ['messages.send'],
      ['messages:*'],
      ['*'],
      ['api-keys:write'],
      ['members:write'],
      ['projects:write'],
      ['Messages:send'],
      [7],
      'messages:send',
      null,
    ]) {
      await assertRefused({ scopes }, /"scopes/)
    }
  })

  test('accepts up to a hundred distinct addresses and networks in canonical form', async () => {
    const many = Array.from({ length: 101 }, (_, n) => `192.0.2.${n}`)
    assert.deepEqual(
      (await create({ allowed_ips: many.slice(0, 100) })).body.resource.allowed_ips,
      many.slice(0, 100),
    )
    assert.deepEqual((await create({ allowed_ips: [] })).body.resource.allowed_ips, [])
    for (const allowed_ips of [
      many,
      ['192.0.2.7', '192.0.2.7'],
      ['192.0.2.7', '192.0.2.7/32'],
      ['192.0.2.7/24'],
      ['::ffff:192.0.2.7'],
      ['localhost'],
      [''],
      [7],
      [null],
      '192.0.2.7',
      null,
    ]) {
      await assertRefused({ allowed_ips }, /"allowed_ips/)
    }
  })

  test('accepts a valid future expiry time with an offset', async () => {
    for (const expires_at of [
      '2020-01-01T00:00:00Z',
      new Date(Date.now() - 1000).toISOString(),
      '2099-01-01',
      '2099-01-01T00:00:00',
      '2099-02-30T00:00:00Z',
      '2099-13-01T00:00:00Z',
      '2099-01-01T25:00:00Z',
      '2099-12-31T23:59:60Z',
      '9999-12-31T23:59:59-12:00',
      '+010000-01-01T00:00:00Z',
      'tomorrow',
      'infinity',
      '',
      4102444800,
    ]) {
      await assertRefused({ expires_at }, /"expires_at"/)
    }
    const soon = new Date(Date.now() + 60_000).toISOString()
    assert.equal((await create({ expires_at: soon })).body.resource.expires_at, soon)
    const last = '9999-12-31T23:59:59.999Z'
    assert.equal((await create({ expires_at: last })).body.resource.expires_at, last)
  })

  test("can be bound to one of the project's domains, or to none", async () => {
    const { id } = await makeDomain(projectId)
    assert.equal((await create({ domain_id: id })).body.resource.domain_id, id)
    const theirs = await makeDomain((await makeProject()).id)
    const [foreign, absent] = [
      await create({ domain_id: theirs.id }),
      await create({ domain_id: 999_999_999 }),
    ]
    assertProblem(foreign, 422, 'validation_failed')
    assert.match(foreign.body.message, /^"domain_id" must be a domain of project/)
    assert.equal(foreign.text, absent.text)
    const leaving = await makeDomain(projectId)
    await database.query('update control.identities set retiring_at = now() where domain_id = $1', [
      leaving.id,
    ])
    const late = await holdingBack(database, `delete from control.domains where id = ${leaving.id}`, () =>
      create({ domain_id: leaving.id }),
    )
    assertProblem(late, 422, 'validation_failed')
  })

  test('requires only a name and has defaults for all other fields', async () => {
    const unnamed = await create({ name: undefined })
    assertProblem(unnamed, 422, 'validation_failed')
    assert.equal(unnamed.body.message, '"name" is missing.')
    const fields = ['mode', 'scopes', 'domain_id', 'allowed_ips', 'expires_at', 'is_active']
    const { status, body } = await create(Object.fromEntries(fields.map((field) => [field, undefined])))
    assert.equal(status, 201)
    const { prefix, scopes, domain_id, allowed_ips, expires_at, is_active } = body.resource
    assert.match(prefix, /^pk_live_/)
    assert.deepEqual(
      { scopes, domain_id, allowed_ips, expires_at, is_active },
      { scopes: ['messages:send'], domain_id: null, allowed_ips: [], expires_at: null, is_active: true },
    )
    for (const change of [
      { mode: 'production' },
      { mode: null },
      { is_test: true },
      { secret: 'pk_live_mine' },
      { prefix: 'pk_live_mine' },
      { last_used_at: null },
      { name: ' ' },
      { is_active: null },
    ]) {
      await assertRefused(change, new RegExp(`"${Object.keys(change)[0]}"`))
    }
  })

  test('returns 404 for a missing project', async () => {
    const body = { mode: 'live', ...apiKeyConfiguration }
    assertProblem(await admin.post('/projects/999999999/api-keys', body), 404, 'not_found')
  })
})

describe('preview of api-keys.create', () => {
  test('describes what the key can do, without a secret', async () => {
    const domain = await makeDomain(projectId, { status: 'verified' })
    const { effects, warnings, changes } = await preview({ mode: 'test', domain_id: domain.id })
    assert.deepEqual(effects, [
      `The key can be used in project ${projectId} for: messages:send, messages:read.`,
      `The key can send only from ${domain.name}.`,
      'This is a test key: its mail is accepted but never sent.',
    ])
    assert.deepEqual(warnings, [])
    assert.deepEqual(
      changes.filter(({ field }) => field === 'mode').map(({ after }) => after),
      ['test'],
    )
    assert.deepEqual((await preview({ is_active: false })).effects, ['The key is inactive and is rejected.'])
  })

  test('warns about an unverified domain, and about a key without restrictions or expiry', async () => {
    for (const status of ['pending', 'failed'] as const) {
      const domain = await makeDomain(projectId, { status })
      const awaiting = `Domain ${domain.name} is not verified: the key cannot send until it is.`
      assert.deepEqual((await preview({ domain_id: domain.id })).warnings, [awaiting])
      assert.deepEqual((await preview({ domain_id: domain.id, scopes: ['usage:read'] })).warnings, [])
    }
    const open = await preview({ allowed_ips: [] })
    assert.match(open.warnings.join(), /any IP address and never expires/)
    assert.deepEqual((await preview({ allowed_ips: [], expires_at: '2099-01-01T00:00:00Z' })).warnings, [])
    assert.match(
      (await preview({ allowed_ips: ['0.0.0.0/0'] })).warnings.join(),
      /A \/0 network allows every/,
    )
  })
})
