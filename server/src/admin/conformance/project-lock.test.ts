import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'
import { isMutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/**
 * Changes that affect a project's mail are serialized: each locks the project first, so renaming a domain cannot
 * run concurrently with an edit to its routes.
 */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const scenarios = mutationScenarios(database, admin)

const serialised = adminOperations
  .filter(isMutation)
  .filter(({ id }) => /^(routing|api-keys|queue|messages)\./.test(id))

describe('a lock on the project', () => {
  for (const operation of serialised) {
    test(`blocks ${operation.id}`, async () => {
      const { path, body } = (await scenarios[operation.id]?.[0]?.prepare()) ?? assert.fail()
      const [, , projectId] = path.split('/')
      const answer = await holdingBack(
        database,
        `select from control.projects where id = ${projectId} for no key update`,
        () => admin.request(methodOf(operation), path, { ...body, reason }),
      )
      assert.ok(answer.status < 300, answer.text)
    })
  }

  test('blocks twelve operations', () => assert.equal(serialised.length, 12))
})
