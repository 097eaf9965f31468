import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { searchUsers } from '../../core/control/users/users.ts'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { searchToEnd } from '../../testing/harness/search.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser } = fixtures(database, admin)

const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id)
const foundBy = async (q: string) => (await readAllPages(admin, '/users', { q })).map(({ id }) => id)

async function addMany(count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.users (email, name)
     select gen_random_uuid() || '@bulk.example', 'Bulk' from generate_series(1, $1) returning id`,
    [count],
  )
  return rows.map(({ id }) => Number(id)).reverse()
}

describe('users.list', () => {
  test('returns each user as users.show does, newest first', async () => {
    const [first, second] = [await makeUser(), await makeUser({ is_active: false })]
    const alone = await Promise.all(
      [second.id, first.id, admin.userId].map(async (id) => (await admin.get(`/users/${id}`)).body),
    )
    assert.deepEqual((await admin.get('/users')).body, { data: alone, next_cursor: null })
  })

  test('finds part of the address or name, case-insensitively', async () => {
    const user = await makeUser({
      email: 'ada.lovelace@analytical.example',
      name: 'Ada, Countess of Lovelace',
    })
    for (const q of ['lovelace@', 'ADA.LOVE', 'analytical.example', 'countess OF', 'Ada, C']) {
      assert.deepEqual(await foundBy(q), [user.id], q)
    }
    assert.deepEqual(await foundBy('babbage'), [])
  })

  test('treats the search text as plain text, even if it contains SQL wildcards', async () => {
    const names = [
      '100% Ada',
      'under_score',
      'back\\slash',
      "O'Brien",
      '"Q" Quote',
      '%_\\',
      "'; drop table users; --",
    ]
    const made = new Map<string, number>()
    for (const name of names) made.set(name, (await makeUser({ name })).id)
    const holding = (part: string) =>
      [...made].flatMap(([name, id]) => (name.includes(part) ? [id] : [])).sort((a, b) => b - a)
    for (const q of [
      '%',
      '_',
      '\\',
      '%_',
      '_\\',
      "'",
      "''",
      '"',
      '0%',
      'r_s',
      'k\\s',
      '; drop',
      '.*',
      '\\%',
      '%@%',
    ]) {
      assert.deepEqual(await foundBy(q), holding(q), q)
    }
  })

  test('filters by role and by whether the user can sign in', async () => {
    const q = 'tellable'
    const made = new Map<string, number>()
    for (const role of ['user', 'admin'] as const) {
      for (const is_active of [true, false]) {
        const { id } = await makeUser({ name: `Tellable ${role}`, role, is_active })
        made.set(`${role} ${is_active}`, id)
      }
    }
    const found = async (query: Record<string, string>) =>
      (await readAllPages(admin, '/users', { q, ...query })).map(({ id }) => id)
    const of = (...names: string[]) =>
      names.map((name) => made.get(name)).sort((a, b) => Number(b) - Number(a))
    assert.deepEqual(await found({ role: 'admin' }), of('admin true', 'admin false'))
    assert.deepEqual(await found({ role: 'user' }), of('user true', 'user false'))
    assert.deepEqual(await found({ is_active: 'false' }), of('user false', 'admin false'))
    assert.deepEqual(await found({ is_active: 'true' }), of('user true', 'admin true'))
    assert.deepEqual(await found({ role: 'admin', is_active: 'false' }), of('admin false'))
    assert.deepEqual(await found({ role: 'user', is_active: 'true' }), of('user true'))
  })

  test('continues over pages that are not full', async () => {
    const db = openDatabase(database).as('admin')
    const everybody = await readAllPages(admin, '/users', { limit: '200' })
    for (const q of ['tellable', 'bulk', 'person', 'zz', 'e', '%']) {
      for (const bounds of [
        { firstScan: 3, nextScan: 3, fewInTable: 0, scanMs: 0, searchMs: 25 },
        { firstScan: 3, nextScan: 3, fewInTable: 1000, scanMs: 0, searchMs: 10_000 },
      ]) {
        const search = { q, isActive: true, limit: 5 }
        const { ids } = await searchToEnd(
          (after) => db.read((tx) => searchUsers(tx, { ...search, beforeId: after?.id }, bounds)),
          search.limit,
        )
        const all = await readAllPages(admin, '/users', { q, is_active: 'true' })
        assert.deepEqual(ids, idsOf(all), q)
        assert.ok(everybody.length > ids.length)
      }
    }
  })

  test('returns each user once at any page size, while users are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/users', ids, () => addMany(1))
    const bulk = await readAllPages(admin, '/users', { q: '@bulk.example', limit: '100' })
    assert.ok(bulk.length >= 250)
    assert.equal(new Set(bulk.map(({ id }) => id)).size, bulk.length)
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/users', lastId)
    for (const query of ['q=', `q=${'x'.repeat(101)}`, 'q=%00', 'q=a&q=b', 'role=owner', 'is_active=1']) {
      assertProblem(await admin.get(`/users?${query}`), 400, 'invalid_parameter')
    }
  })
})
