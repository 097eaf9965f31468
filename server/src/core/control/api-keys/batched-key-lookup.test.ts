import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReadTx, UnscopedDb } from '../../../platform/db/db.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { BatchedKeyLookup } from './batched-key-lookup.ts'
import { hashOf, newSecret } from './secret.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeApiKey } = fixtures(database, admin)
const mail = openDatabase(database).as('mail')
const { id: projectId } = await makeProject()

/** Counts the completed queries, and delays their results until `hold` resolves. */
function counted(hold?: Promise<unknown>) {
  let queries = 0
  const db: UnscopedDb = {
    transaction: (work) => mail.transaction(work),
    dryRun: (work) => mail.dryRun(work),
    read: (work) => mail.read(work),
    writeOne: (statement) => mail.writeOne(statement),
    async readOne<T>(query: (tx: ReadTx) => Promise<T>): Promise<T> {
      const answer = await mail.readOne(query)
      queries++
      await hold
      return answer
    },
  }
  return { lookups: new BatchedKeyLookup(db), queries: () => queries }
}

const unknown = () => hashOf(newSecret('live'))

describe('key lookups', () => {
  test('share one query when requested together, and each returns its own result', async () => {
    const keys = await Promise.all([1, 2, 3].map(() => makeApiKey(projectId)))
    const { lookups, queries } = counted()
    const hashes = [...keys.map(({ secret }) => hashOf(secret)), unknown(), hashOf(keys[0]?.secret ?? '')]
    const found = await Promise.all(hashes.map((hash) => lookups.find(hash)))
    const [first, second, third] = keys.map(({ resource }) => resource.id)
    assert.deepEqual(
      found.map((key) => key?.id),
      [first, second, third, undefined, first],
    )
    assert.equal(queries(), 1)
    assert.ok(found.every((key) => !(key && 'secret_hash' in key)))
  })

  test('use a query that started after the request', async () => {
    const { resource, secret } = await makeApiKey(projectId)
    const go = Promise.withResolvers<void>()
    const { lookups, queries } = counted(go.promise)
    const before = [lookups.find(hashOf(secret))]
    while (queries() < 1) await new Promise((resolve) => setImmediate(resolve))
    before.push(lookups.find(hashOf(secret)))
    while (queries() < 2) await new Promise((resolve) => setImmediate(resolve))
    await admin.delete(`/projects/${projectId}/api-keys/${resource.id}`, { reason: 'Found in a repository' })
    const after = lookups.find(hashOf(secret))
    go.resolve()
    assert.deepEqual(
      (await Promise.all(before)).map((key) => key?.id),
      [resource.id, resource.id],
    )
    assert.equal(await after, undefined)
    assert.equal(queries(), 3)
  })

  test('reject all requests that shared a failed query, and later requests run a new query', async () => {
    let isBroken = true
    const broken = new BatchedKeyLookup({
      ...mail,
      readOne: async (query) => {
        if (isBroken) throw new Error('unavailable')
        return mail.readOne(query)
      },
    } as UnscopedDb)
    const requests = [broken.find(unknown()), broken.find(unknown())]
    for (const one of requests) await assert.rejects(one, /unavailable/)
    isBroken = false
    assert.equal(await broken.find(unknown()), undefined)
  })
})
