import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { fixtures, routeConfiguration } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { lockProject } from '../projects/projects.ts'
import { createRoute, deleteRoute, editRoute, listRoutes, lockRoute, routeConfig } from './routes.ts'

const database = await testDatabase()
const api = await startApi(database)
const { makeProject, makeDomain, makeEndpoint } = fixtures(database, await signedIn(api))

describe('routes', () => {
  test('can be managed by a customer in their own project, but not for another project’s domain', async () => {
    const [mine, theirs] = [await makeProject(), await makeProject()]
    const [domain, foreign] = [await makeDomain(mine.id), await makeDomain(theirs.id)]
    const { resource: endpoint } = await makeEndpoint(mine.id)
    const customer = openDatabase(database).asCustomer().forProject(mine.id)
    const config = { ...routeConfiguration, domain_id: domain.id }
    const toEndpoint = { ...config, action: 'endpoint' as const, endpoint_id: endpoint.id }

    await customer.transaction(async (tx) => {
      await lockProject(tx, mine.id)
      const made = await createRoute(tx, mine.id, config)
      const edited = await editRoute(tx, await lockRoute(tx, mine.id, made.id), toEndpoint)
      assert.deepEqual([routeConfig(edited), edited.version], [toEndpoint, 2])
      assert.deepEqual(await listRoutes(tx, mine.id, { limit: 10 }), [edited])
      await deleteRoute(tx, edited)
      assert.deepEqual(await listRoutes(tx, mine.id, { limit: 10 }), [])
    })
    for (const projectId of [mine.id, theirs.id]) {
      await assert.rejects(
        customer.transaction((tx) => createRoute(tx, projectId, { ...config, domain_id: foreign.id })),
        (error) => error instanceof PosternError && error.code === 'validation_failed',
      )
    }
  })
})
