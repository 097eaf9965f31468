import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember } = fixtures(database, admin)

const find = (query: Record<string, string>) => readAllPages(admin, '/projects', query)
const idsOf = (rows: { id: number }[]) => rows.map(({ id }) => id)
const sorts = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score']
const cursorOf = async (query: string) => (await admin.get(`/projects?limit=1&${query}`)).body.next_cursor
const foundBy = async (q: string) => idsOf(await find({ q }))

const owner = await makeUser()
const plan = await makePlan()

/** Inserted with SQL, because that many requests would take most of the test's time. */
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
  test('returns an empty list without a cursor before there is a project', async () => {
    const answer = await admin.get('/projects')
    assert.deepEqual(answer.body, { data: [], next_cursor: null })
    assert.equal(answer.headers.get('etag'), null)
  })

  test('returns each project as projects.show does, newest first', async () => {
    const first = await makeProject()
    const second = await makeProject()
    await admin.patch(`/projects/${first.id}`, { is_locked: true, reason: 'Abuse' })
    const shown = [second.id, first.id].map(async (id) => (await admin.get(`/projects/${id}`)).body)
    assert.deepEqual((await admin.get('/projects?limit=2')).body.data, await Promise.all(shown))
  })

  test('returns each project once at any page size, while projects are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/projects', ids, () => addMany(1))
  })

  test('rejects invalid cursors and limits', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/projects', lastId)
  })

  test('finds part of the name, case-insensitively', async () => {
    const { id } = await makeProject({ name: 'Zürich Käse & Co' })
    for (const q of ['zürich', 'ZÜRICH', 'käse & c', 'Zürich Käse & Co', ' & ']) {
      assert.ok((await foundBy(q)).includes(id), q)
    }
    assert.deepEqual(await foundBy('no such name anywhere'), [])
  })

  test('treats the search text as plain text, even if it contains SQL wildcards', async () => {
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

  test('filters locked and unlocked projects', async () => {
    const [open, locked] = [
      await makeProject({ name: 'Lockable A' }),
      await makeProject({ name: 'Lockable B' }),
    ]
    await admin.patch(`/projects/${locked.id}`, { is_locked: true, reason: 'Abuse' })
    assert.deepEqual(idsOf(await find({ q: 'Lockable', locked: 'true' })), [locked.id])
    assert.deepEqual(idsOf(await find({ q: 'Lockable', locked: 'false' })), [open.id])
  })

  test('filters by the current plan, not by the billed plan', async () => {
    const [billed, granted] = [await makePlan(), await makePlan()]
    const plain = await makeProject({ plan_id: billed.id })
    const favoured = await makeProject({ plan_id: billed.id })
    await admin.patch(`/projects/${favoured.id}`, { admin_plan_id: granted.id, reason: 'Goodwill' })
    assert.deepEqual(idsOf(await find({ plan_id: String(billed.id) })), [plain.id])
    assert.deepEqual(idsOf(await find({ plan_id: String(granted.id) })), [favoured.id])
    assert.deepEqual(await find({ plan_id: '0' }), [])
    assert.deepEqual(await find({ plan_id: String(Number.MAX_SAFE_INTEGER) }), [])
  })

  test('filters by a range of scores, including both ends', async () => {
    const plan_id = (await makePlan()).id
    const made = []
    for (const score of [0, 20, 21, 100]) {
      const { id } = await makeProject({ plan_id })
      await admin.patch(`/projects/${id}`, { reputation_score: score, reason: 'Seen' })
      made.unshift(id)
    }
    const [hundred = 0, twentyOne = 0, twenty = 0, zero = 0] = made
    const scored = async (query: Record<string, string>) =>
      idsOf(await find({ plan_id: String(plan_id), ...query }))
    assert.deepEqual(await scored({ min_score: '21' }), [hundred, twentyOne])
    assert.deepEqual(await scored({ max_score: '20' }), [twenty, zero])
    assert.deepEqual(await scored({ min_score: '20', max_score: '21' }), [twentyOne, twenty])
    assert.deepEqual(await scored({ min_score: '0', max_score: '0' }), [zero])
    assert.deepEqual(await scored({ min_score: '22', max_score: '21' }), [])
    assert.deepEqual(await scored({ max_score: '21', sort: 'reputation_score' }), [zero, twenty, twentyOne])
  })

  test("filters projects that exceed their current plan's limits, and reflects changes to both", async () => {
    const tight = await makePlan({ max_users: 1, max_domains: 1 })
    const wide = await makePlan({ max_users: 5, max_domains: 5 })
    const crowded = await makeProject({ plan_id: tight.id, name: 'Bounded A' })
    const spread = await makeProject({ plan_id: tight.id, name: 'Bounded B' })
    const within = await makeProject({ plan_id: tight.id, name: 'Bounded C' })
    const over = async () => {
      const beyond = idsOf(await find({ q: 'Bounded', over_limit: 'true', sort: 'id' }))
      const others = idsOf(await find({ q: 'Bounded', over_limit: 'false', sort: 'id' }))
      assert.deepEqual([...beyond, ...others].sort(), [crowded.id, spread.id, within.id])
      return beyond
    }
    assert.deepEqual(await over(), [])
    const member = await makeMember(crowded.id, { reason: 'Asked for' })
    assert.deepEqual(await over(), [crowded.id])
    for (const name of ['a.example', 'b.example']) {
      await database.query(
        `insert into control.domains (project_id, name, mta_provider, ownership_token) values ($1, $2, 'ses', '')`,
        [spread.id, name],
      )
    }
    assert.deepEqual(await over(), [crowded.id, spread.id])
    await admin.patch(`/plans/${tight.id}`, { max_users: 2 })
    assert.deepEqual(await over(), [spread.id])
    await admin.patch(`/plans/${tight.id}`, { max_users: 0, max_domains: 9 })
    assert.deepEqual(await over(), [crowded.id, spread.id, within.id])
    await admin.patch(`/projects/${within.id}`, { admin_plan_id: wide.id, reason: 'Goodwill' })
    assert.deepEqual(await over(), [crowded.id, spread.id])
    await admin.patch(`/plans/${tight.id}`, { max_users: 1 })
    assert.deepEqual(await over(), [crowded.id])
    await admin.delete(`/projects/${crowded.id}/members/${member.id}`, { reason: 'Left' })
    assert.deepEqual(await over(), [])
  })

  test('sorts by name case-insensitively, and ties by id', async () => {
    const plan_id = (await makePlan()).id
    const made = new Map<number, string>()
    for (const name of ['beta', 'Alpha', 'ALPHA', 'alpha 2', 'Zulu', 'éclair', 'beta']) {
      made.set((await makeProject({ plan_id, name })).id, name)
    }
    const names = async (sort: string) =>
      idsOf(await find({ plan_id: String(plan_id), sort, limit: '2' })).map((id) => made.get(id))
    const inOrder = ['Alpha', 'ALPHA', 'alpha 2', 'beta', 'beta', 'Zulu', 'éclair']
    assert.deepEqual(await names('name'), inOrder)
    assert.deepEqual(await names('-name'), inOrder.toReversed())
  })

  test('returns each project once in every order and at any page size', async () => {
    for (const sort of sorts) {
      const whole = idsOf(await find({ sort, limit: '200' }))
      assert.deepEqual(
        whole.toSorted((a, b) => b - a),
        idsOf(await find({ limit: '200' })),
        sort,
      )
      for (const limit of ['7', '50']) assert.deepEqual(idsOf(await find({ sort, limit })), whole, sort)
    }
  })

  test('continues at the cursor even if the project at the cursor has moved', async () => {
    const plan_id = (await makePlan()).id
    const made = []
    for (const name of ['a1', 'a2', 'a3', 'a4']) made.push((await makeProject({ plan_id, name })).id)
    const [first = 0, second = 0, third = 0, fourth = 0] = made
    const path = `/projects?plan_id=${plan_id}&sort=name&limit=2`
    const { data, next_cursor } = (await admin.get(path)).body
    assert.deepEqual(idsOf(data), [first, second])
    await admin.patch(`/projects/${second}`, { name: 'z' })
    const further = (await admin.get(`${path}&cursor=${next_cursor}`)).body
    assert.deepEqual(idsOf(further.data), [third, fourth])
  })

  test('rejects a cursor for another sort order', async () => {
    for (const sort of sorts) {
      const cursor = await cursorOf(`sort=${sort}`)
      for (const other of sorts) {
        const answer = await admin.get(`/projects?sort=${other}&cursor=${cursor}`)
        if (other === sort) assert.equal(answer.status, 200, answer.text)
        else assertProblem(answer, 400, 'invalid_parameter')
      }
    }
    assertProblem(
      await admin.get(`/projects?cursor=${await cursorOf('sort=name')}`),
      400,
      'invalid_parameter',
    )
    assertProblem(await admin.get(`/users?cursor=${await cursorOf('sort=name')}`), 400, 'invalid_parameter')
  })

  test('applies its filters on every page', async () => {
    const plan = await makePlan()
    const made = []
    for (let n = 0; n < 5; n++) {
      made.unshift((await makeProject({ plan_id: plan.id })).id)
      await makeProject()
    }
    assert.deepEqual(idsOf(await find({ plan_id: String(plan.id), limit: '2' })), made)
  })

  test('rejects invalid filters', async () => {
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
      'min_score=-1',
      'max_score=101',
      'min_score=1.5',
      'over_limit=yes',
      'sort=',
      'sort=updated_at',
      'sort=Name',
      'sort=name&sort=id',
      'sort=--id',
    ]) {
      assertProblem(await admin.get(`/projects?${query}`), 400, 'invalid_parameter')
    }
  })
})
