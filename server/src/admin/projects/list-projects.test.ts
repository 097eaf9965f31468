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
const { makeUser, makePlan, makeProject } = fixtures(database, admin)

const find = (query: Record<string, string>) => readAllPages(admin, '/projects', query)
const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id)
const foundBy = async (q: string) => idsOf(await find({ q }))

const owner = await makeUser()
const plan = await makePlan()

/** So many that going through the API would take most of the test's time. */
async function addMany(count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `with projects as (
       insert into control.projects (name, user_id, plan_id)
       select 'Bulk ' || n, $1, $2 from generate_series(1, $3) as n returning id
     ), stats as (insert into control.project_stats (project_id) select id from projects)
     select id from projects order by id desc`,
    [owner.id, plan.id, count],
  )
  return rows.map(({ id }) => Number(id))
}

describe('projects.list', () => {
  test('is empty, and so is its cursor, before there is a project', async () => {
    const answer = await admin.get('/projects')
    assert.deepEqual(answer.body, { data: [], next_cursor: null })
    assert.equal(answer.headers.get('etag'), null)
  })

  test('shows each project as it is shown alone, newest first', async () => {
    const first = await makeProject()
    const second = await makeProject()
    await admin.patch(`/projects/${first.id}`, { is_locked: true, reason: 'Abuse' })
    const shown = [second.id, first.id].map(async (id) => (await admin.get(`/projects/${id}`)).body)
    assert.deepEqual((await admin.get('/projects?limit=2')).body.data, await Promise.all(shown))
  })

  test('gives each project once at any page size, while others are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/projects', ids, () => addMany(1))
  })

  test('refuses cursors and limits that it did not give out', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/projects', lastId)
  })

  test('finds a part of the name, in any case', async () => {
    const { id } = await makeProject({ name: 'Zürich Käse & Co' })
    for (const q of ['zürich', 'ZÜRICH', 'käse & c', 'Zürich Käse & Co', ' & ']) {
      assert.ok((await foundBy(q)).includes(id), q)
    }
    assert.deepEqual(await foundBy('no such name anywhere'), [])
  })

  test('takes what is searched for as plain text, whatever it means to a database', async () => {
    const names = [
      '50% off',
      'snake_case',
      'back\\slash',
      "O'Brien",
      '"quoted"',
      '%_\\',
      '; drop table x; --',
      '[a-z]*',
    ]
    const made = new Map<string, number>()
    for (const name of names) made.set(name, (await makeProject({ name })).id)
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
      '50%',
      'e_c',
      'k\\s',
      '; drop',
      '[a-z]*',
      '.*',
      '\\%',
    ]) {
      assert.deepEqual(await foundBy(q), holding(q), q)
    }
  })

  test('tells locked from unlocked projects', async () => {
    const [open, locked] = [
      await makeProject({ name: 'Lockable A' }),
      await makeProject({ name: 'Lockable B' }),
    ]
    await admin.patch(`/projects/${locked.id}`, { is_locked: true, reason: 'Abuse' })
    assert.deepEqual(idsOf(await find({ q: 'Lockable', locked: 'true' })), [locked.id])
    assert.deepEqual(idsOf(await find({ q: 'Lockable', locked: 'false' })), [open.id])
  })

  test('finds by the plan in force, not by the one that is billed', async () => {
    const [billed, granted] = [await makePlan(), await makePlan()]
    const plain = await makeProject({ plan_id: billed.id })
    const favoured = await makeProject({ plan_id: billed.id })
    await admin.patch(`/projects/${favoured.id}`, { admin_plan_id: granted.id, reason: 'Goodwill' })
    assert.deepEqual(idsOf(await find({ plan_id: String(billed.id) })), [plain.id])
    assert.deepEqual(idsOf(await find({ plan_id: String(granted.id) })), [favoured.id])
    assert.deepEqual(await find({ plan_id: '0' }), [])
    assert.deepEqual(await find({ plan_id: String(Number.MAX_SAFE_INTEGER) }), [])
  })

  test('keeps its filters from page to page', async () => {
    const plan = await makePlan()
    const made = []
    for (let n = 0; n < 5; n++) {
      made.unshift((await makeProject({ plan_id: plan.id })).id)
      await makeProject()
    }
    assert.deepEqual(idsOf(await find({ plan_id: String(plan.id), limit: '2' })), made)
  })

  test('refuses filters that are none', async () => {
    for (const query of [
      'q=',
      `q=${'x'.repeat(101)}`,
      'q=%00',
      'locked=1',
      'locked=TRUE',
      'locked=',
      'plan_id=1e3',
      'plan_id=-1',
      'lock=true',
    ]) {
      assertProblem(await admin.get(`/projects?${query}`), 400, 'invalid_parameter')
    }
  })
})
