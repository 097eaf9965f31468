import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { apiKeyConfiguration, fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { lockProject } from '../projects/projects.ts'
import {
  apiKeyView,
  createApiKey,
  deleteApiKey,
  editApiKey,
  listApiKeys,
  lockApiKey,
  rotateApiKey,
} from './api-keys.ts'

const database = await testDatabase()
const api = await startApi(database)
const { makeProject, makeDomain } = fixtures(database, await signedIn(api))

const maker = { type: 'user', id: 1 } as const

describe('API keys', () => {
  test('can be managed by a customer in their own project', async () => {
    const [mine, theirs] = [await makeProject(), await makeProject()]
    const config = { ...apiKeyConfiguration, domain_id: (await makeDomain(mine.id)).id }
    const customer = openDatabase(database).asCustomer().forProject(mine.id)
    await customer.transaction(async (tx) => {
      await lockProject(tx, mine.id)
      const { row } = await createApiKey(tx, mine.id, 'live', config, maker)
      const edited = await editApiKey(tx, await lockApiKey(tx, mine.id, row.id), { ...config, name: 'Other' })
      const { row: rotated } = await rotateApiKey(tx, edited)
      assert.deepEqual([rotated.name, rotated.version], ['Other', 3])
      assert.deepEqual(await listApiKeys(tx, mine.id, { limit: 10 }), [rotated])
      await deleteApiKey(tx, rotated)
      assert.deepEqual(await listApiKeys(tx, mine.id, { limit: 10 }), [])
    })
    await assert.rejects(
      customer.transaction((tx) => createApiKey(tx, theirs.id, 'live', apiKeyConfiguration, maker)),
      /row-level security/,
    )
  })

  test('are rejected if scopes, addresses or times are invalid although the schema accepts them', async () => {
    const { id } = await makeProject()
    const create = (changes: object) =>
      api.context.db.admin.transaction((tx) =>
        createApiKey(tx, id, 'live', { ...apiKeyConfiguration, ...changes }, maker),
      )
    const times = [
      '2099-02-30T00:00:00Z',
      '2099-02-29T00:00:00+01:00',
      '2099-12-31T23:59:60Z',
      '2099-12-31T24:00:00Z',
      '2099-12-31',
      '2099-12-31T00:00:00',
      '4102444800',
      '9999-12-31T23:59:59-00:01',
      'infinity',
    ]
    const wrong = [
      ...times.map((expires_at) => ({ expires_at })),
      { scopes: [] },
      { scopes: ['api-keys:write'] },
      { allowed_ips: Array.from({ length: 101 }, (_, n) => `192.0.2.${n}`) },
      { name: '' },
    ]
    for (const changes of wrong) {
      await assert.rejects(
        create(changes),
        (error) => error instanceof PosternError && error.code === 'validation_failed',
        JSON.stringify(changes),
      )
    }
    const { row } = await create({ expires_at: '2096-02-29T23:30:00.999999-00:30' })
    assert.equal(row.expires_at?.toISOString(), '2096-03-01T00:00:00.999Z')
  })

  test('are read and shown without the hash', async () => {
    const { id } = await makeProject()
    const { row, secret } = await api.context.db.admin.transaction((tx) =>
      createApiKey(tx, id, 'test', apiKeyConfiguration, maker),
    )
    assert.ok(!('secret_hash' in row))
    assert.ok(!JSON.stringify(apiKeyView(row)).includes(secret.slice(12, 20)))
  })
})
