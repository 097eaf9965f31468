import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../../testing/api.ts'
import { signedIn } from '../../testing/client.ts'
import { testDatabase } from '../../testing/database.ts'
import { fixtures } from '../../testing/fixtures.ts'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/pages.ts'
import { assertProblem } from '../../testing/problem.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser } = fixtures(database, admin)

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
  test('shows everybody as they are shown alone, newest first', async () => {
    const [first, second] = [await makeUser(), await makeUser({ is_active: false })]
    const alone = await Promise.all(
      [second.id, first.id, admin.userId].map(async (id) => (await admin.get(`/users/${id}`)).body),
    )
    assert.deepEqual((await admin.get('/users')).body, { data: alone, next_cursor: null })
  })

  test('finds a part of the address or of the name, in any case', async () => {
    const user = await makeUser({
      email: 'ada.lovelace@analytical.example',
      name: 'Ada, Countess of Lovelace',
    })
    for (const q of ['lovelace@', 'ADA.LOVE', 'analytical.example', 'countess OF', 'Ada, C']) {
      assert.deepEqual(await foundBy(q), [user.id], q)
    }
    assert.deepEqual(await foundBy('babbage'), [])
  })

  test('takes what is searched for as plain text, whatever it means to a database', async () => {
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

  test('gives each user once at any page size, while others are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/users', ids, () => addMany(1))
    const bulk = await readAllPages(admin, '/users', { q: '@bulk.example', limit: '100' })
    assert.ok(bulk.length >= 250)
    assert.equal(new Set(bulk.map(({ id }) => id)).size, bulk.length)
  })

  test('refuses cursors, limits and filters that are none', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/users', lastId)
    for (const query of ['q=', `q=${'x'.repeat(101)}`, 'q=%00', 'q=a&q=b', 'role=admin']) {
      assertProblem(await admin.get(`/users?${query}`), 400, 'invalid_parameter')
    }
  })
})
