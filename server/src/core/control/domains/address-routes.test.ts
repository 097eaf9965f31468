import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PosternError } from '../../../platform/errors.ts'
import { domainRows } from '../../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { holdingBack } from '../../../testing/harness/lock-queue.ts'
import { moveAddressRoutes, type RouteChoice } from './address-routes.ts'

/** Unit tests. admin/domains/edit-domain-routes.test.ts tests the same rules through the API. */
const database = await testDatabase()
const admin = await signedIn(await startApi(database))
const { makeProject, makeDomain } = fixtures(database, admin)
const { addressRoute, catchAll, routes } = domainRows(database)
const db = openDatabase(database).as('admin')

const { id: project_id } = await makeProject()

async function makeRouted(...locals: string[]) {
  const { id, name } = await makeDomain(project_id)
  const domain = { id, name, project_id }
  const ids: number[] = []
  for (const local of locals) ids.push(await addressRoute(domain, `${local}@${name}`))
  return { domain, ids }
}

const move = (domain: Parameters<typeof moveAddressRoutes>[1], newName: string, choice: RouteChoice) =>
  db.transaction((tx) => moveAddressRoutes(tx, domain, newName, choice))

const isUnresolved = (error: unknown) => (error as PosternError).code === 'address_routes_unresolved'

describe('the address routes of a renamed domain', () => {
  test('move as requested in the order of their ids, and the moves are returned', async () => {
    const { domain, ids } = await makeRouted('b', 'a')
    const [first = 0, second = 0] = ids
    assert.deepEqual(await move(domain, 'new.example.net', { preserve_local_parts: true }), [
      { id: first, before: `b@${domain.name}`, after: 'b@new.example.net' },
      { id: second, before: `a@${domain.name}`, after: 'a@new.example.net' },
    ])
  })

  test('do not change if the name does not change, and nothing is locked or written', async () => {
    const { domain } = await makeRouted('a')
    for (const choice of [{}, { preserve_local_parts: true }, { route_replacements: [] }]) {
      assert.deepEqual(await move(domain, domain.name, choice), [])
    }
    assert.equal((await routes(domain.id))[0]?.version, 1)
  })

  test('do not include a catch-all', async () => {
    const { domain } = await makeRouted()
    await catchAll(domain)
    assert.deepEqual(await move(domain, 'new.example.net', {}), [])
  })

  test('move all or not at all', async () => {
    const { domain, ids } = await makeRouted('a', 'b')
    const [first = 0, second = 0] = ids
    const route_replacements = [
      { route_id: first, address: 'a@new.example.net' },
      { route_id: second, address: 'b@elsewhere.example.net' },
    ]
    const before = await routes(domain.id)
    await assert.rejects(move(domain, 'new.example.net', { route_replacements }), isUnresolved)
    assert.deepEqual(await routes(domain.id), before)
  })

  test('are locked first, so a concurrent change to an address is respected', async () => {
    const { domain, ids } = await makeRouted('a')
    const moves = await holdingBack(
      database,
      `update control.routes set address = 'z@${domain.name}', version = version + 1 where id = ${ids[0]}`,
      () => move(domain, 'new.example.net', { preserve_local_parts: true }),
    )
    assert.deepEqual(moves, [{ id: ids[0], before: `z@${domain.name}`, after: 'z@new.example.net' }])
    assert.equal((await routes(domain.id))[0]?.version, 3)
  })

  test('move in one statement, even a thousand', async () => {
    const { domain } = await makeRouted()
    await database.query(
      `insert into control.routes (project_id, domain_id, match, address, action)
       select $1, $2, 'address', 'n' || n || '@' || $3, 'drop' from generate_series(1, 1000) as n`,
      [project_id, domain.id, domain.name],
    )
    const moves = await move(domain, 'new.example.net', { preserve_local_parts: true })
    assert.equal(moves.length, 1000)
    const rows = await routes(domain.id)
    assert.ok(rows.every(({ address }) => address?.endsWith('@new.example.net')))
  })
})
