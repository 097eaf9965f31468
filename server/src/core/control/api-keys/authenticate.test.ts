import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { PosternError } from '../../../platform/errors.ts'
import { apiKeyConfiguration, fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { holdingBack } from '../../../testing/harness/lock-queue.ts'
import { lockApiKey, rotateApiKey } from './api-keys.ts'
import { authenticateApiKey, findIn, recordUse } from './authenticate.ts'
import { hashOf, newSecret } from './secret.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeApiKey } = fixtures(database, admin)
const opened = openDatabase(database)
const { id: projectId } = await makeProject()
const reason = 'Found in a public repository'

const here = '192.0.2.7'
const open = { allowed_ips: [] as string[] }
const pathOf = (id: number) => `/projects/${projectId}/api-keys/${id}`

/** Uses the customer plane's role. `after` advances the database clock. */
const authenticate = (secret: string, address = here, after = '0') =>
  opened.as('mail').read(async (tx) => {
    await sql`select set_config('postern.clock_offset', ${after}, true)`.execute(tx)
    return authenticateApiKey(findIn(tx), secret, address)
  })

const refusalOf = async (attempt: Promise<unknown>): Promise<PosternError> => {
  const error = await attempt.then(
    () => assert.fail('the key was accepted'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof PosternError, String(error))
  return error
}

/** The response is the same for every kind of invalid key. */
async function assertDead(attempt: Promise<unknown>): Promise<void> {
  const { code, message } = await refusalOf(attempt)
  assert.deepEqual([code, message], ['unauthenticated', (await refusalOf(authenticate('pk_live_x'))).message])
}

describe('an API key', () => {
  test('is identified by its secret, with its project and permissions', async () => {
    for (const mode of ['live', 'test'] as const) {
      const { resource, secret } = await makeApiKey(projectId, { ...open, mode, scopes: ['usage:read'] })
      const key = await authenticate(secret)
      assert.deepEqual(
        [key.id, key.project_id, key.is_test, key.scopes, key.domain_id, key.prefix],
        [resource.id, projectId, mode === 'test', ['usage:read'], null, secret.slice(0, 12)],
      )
      assert.ok(!('secret_hash' in key))
    }
  })

  test('is rejected if it was never issued or is mistyped', async () => {
    const { secret } = await makeApiKey(projectId, open)
    for (const wrong of [
      newSecret('live'),
      secret.toLowerCase(),
      secret.slice(0, -1),
      `${secret}x`,
      ` ${secret}`,
      secret.replace('live', 'test'),
      '',
      'garbage',
    ]) {
      await assertDead(authenticate(wrong))
    }
  })

  test('with a wrong checksum is rejected without a lookup', async () => {
    const { resource, secret } = await makeApiKey(projectId, open)
    const forged = secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0')
    await database.query('update control.api_keys set secret_hash = $2 where id = $1', [
      resource.id,
      hashOf(forged),
    ])
    await assertDead(authenticate(forged))
  })

  test('is rejected immediately after it is disabled, and accepted again after it is enabled', async () => {
    const { resource, secret } = await makeApiKey(projectId, open)
    const configuration = { ...apiKeyConfiguration, ...open }
    await admin.patch(pathOf(resource.id), { ...configuration, is_active: false })
    await assertDead(authenticate(secret))
    await admin.patch(pathOf(resource.id), { ...configuration, is_active: true })
    assert.equal((await authenticate(secret)).id, resource.id)
  })

  test('is rejected immediately after it is deleted', async () => {
    const { resource, secret } = await makeApiKey(projectId, open)
    await authenticate(secret)
    assert.equal((await admin.delete(pathOf(resource.id), { reason })).status, 204)
    await assertDead(authenticate(secret))
  })

  test('is valid until it expires, by the database clock', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const { resource, secret } = await makeApiKey(projectId, { ...open, expires_at })
    assert.equal((await authenticate(secret)).id, resource.id)
    assert.equal((await authenticate(secret, here, '59 minutes')).id, resource.id)
    await assertDead(authenticate(secret, here, '1 hour'))
    await assertDead(authenticate(secret, here, '10 years'))
  })

  test('keeps its old secret until a rotation commits, and then has only the new one', async () => {
    const { resource, secret: old } = await makeApiKey(projectId, open)
    const young = await opened.as('admin').transaction(async (tx) => {
      const { secret } = await rotateApiKey(tx, await lockApiKey(tx, projectId, resource.id))
      assert.equal((await authenticate(old)).id, resource.id, 'the old secret is valid before the commit')
      await assertDead(authenticate(secret))
      return secret
    })
    await assertDead(authenticate(old))
    assert.equal((await authenticate(young)).id, resource.id)
  })

  test('is rejected from other client addresses, and only a caller with the secret learns the reason', async () => {
    const allowed_ips = ['192.0.2.0/24', '2001:db8::7']
    const { resource, secret } = await makeApiKey(projectId, { allowed_ips })
    for (const address of ['192.0.2.7', '::ffff:192.0.2.200', '2001:db8::7']) {
      assert.equal((await authenticate(secret, address)).id, resource.id, address)
    }
    for (const address of ['192.0.3.1', '2001:db8::8', '::1', '']) {
      const { code, message } = await refusalOf(authenticate(secret, address))
      assert.equal(code, 'address_not_allowed', address)
      assert.ok(message.includes(address))
    }
    await admin.post(`${pathOf(resource.id)}/rotate`, { reason })
    await assertDead(authenticate(secret, '192.0.3.1'))
  })
})

describe('the last use of an API key', () => {
  const statsOf = async (id: number) => {
    const [row] = await database.query<{ last_used_at: Date; xmin: string; xmax: string }>(
      'select last_used_at, xmin::text, xmax::text from control.api_key_stats where api_key_id = $1',
      [id],
    )
    return row
  }
  const customer = opened.asCustomer()
  const use = (id: number, after = '0', project = projectId) =>
    customer.forProject(project).transaction(async (tx) => {
      await sql`select set_config('postern.clock_offset', ${after}, true)`.execute(tx)
      await recordUse(tx, project, id)
    })

  test('is recorded at most once per minute, without locks in between', async () => {
    const { resource } = await makeApiKey(projectId)
    assert.equal(await statsOf(resource.id), undefined)
    await use(resource.id)
    const first = (await statsOf(resource.id)) ?? assert.fail()
    for (const after of ['0', '10 seconds', '30 seconds']) await use(resource.id, after)
    assert.deepEqual(await statsOf(resource.id), first)
    await use(resource.id, '61 seconds')
    const second = (await statsOf(resource.id)) ?? assert.fail()
    assert.ok(second.last_used_at.getTime() - first.last_used_at.getTime() >= 60_000)
    assert.notEqual(second.xmin, first.xmin)
    // If the clock was set back, nothing is written.
    await use(resource.id, '-1 hour')
    assert.deepEqual(await statsOf(resource.id), second)
  })

  test('is returned with the key, and does not change its version or update time', async () => {
    const { resource } = await makeApiKey(projectId)
    await use(resource.id)
    const { body, headers } = await admin.get(pathOf(resource.id))
    const { last_used_at } = body
    assert.match(last_used_at, /^\d{4}-.*Z$/)
    assert.deepEqual(body, { ...resource, last_used_at })
    assert.equal(headers.get('etag'), '"1"')
  })

  test('is recorded once for fifty concurrent requests', async () => {
    const { resource } = await makeApiKey(projectId)
    await Promise.all(Array.from({ length: 50 }, () => use(resource.id)))
    const first = (await statsOf(resource.id)) ?? assert.fail()
    await Promise.all(Array.from({ length: 50 }, () => use(resource.id, '2 minutes')))
    const second = (await statsOf(resource.id)) ?? assert.fail()
    assert.ok(second.last_used_at > first.last_used_at)
  })

  test('is not recorded again if another process records it at the same time', async () => {
    const { resource } = await makeApiKey(projectId)
    await use(resource.id, '-1 hour')
    const theirs = "update control.api_key_stats set last_used_at = date_trunc('second', postern.now())"
    await holdingBack(database, `${theirs} where api_key_id = ${resource.id}`, () => use(resource.id))
    const { last_used_at } = (await statsOf(resource.id)) ?? assert.fail()
    assert.equal(last_used_at.getMilliseconds(), 0, 'it overwrote the other record')
  })

  test('does not wait for an edit, and is skipped for a key that is being deleted', async () => {
    const [{ resource: edited }, { resource: deleted }] = [
      await makeApiKey(projectId),
      await makeApiKey(projectId),
    ]
    await opened.as('admin').transaction(async (tx) => {
      await lockApiKey(tx, projectId, edited.id)
      await use(edited.id)
    })
    assert.ok(await statsOf(edited.id))
    await holdingBack(database, `delete from control.api_keys where id = ${deleted.id}`, () =>
      use(deleted.id),
    )
    assert.equal(await statsOf(deleted.id), undefined)
  })

  test("cannot be recorded for another project's key", async () => {
    const other = await makeProject()
    const { resource } = await makeApiKey(other.id)
    await customer.forProject(projectId).transaction((tx) => recordUse(tx, other.id, resource.id))
    await use(resource.id)
    assert.equal(await statsOf(resource.id), undefined)
  })
})
