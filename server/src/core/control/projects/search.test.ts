import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { insertPlans } from '../../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { searchToEnd } from '../../../testing/harness/search.ts'
import { type ProjectSearch, projectBounds, searchProjects } from './search.ts'
import type { ProjectSort } from './wire.ts'

/** Compares searches with a scan of all projects, including the order. */
const chance = new Chance(seed)
const database = await testDatabase()
const db = openDatabase(database).as('admin')

interface Model {
  id: number
  name: string
  is_locked: boolean
  plan_id: number
  score: number
  is_over: boolean
}

const words = ['Acme', 'acme', 'Zürich', 'Öl', 'a', 'B', '100%', 'snake_case', 'Project', 'Quixotic', 'é']
await makeProjects(200)
const projects = await readProjects()

/** Inserted into the tables with SQL. Many projects share names, scores and counts. Triggers fill the listing. */
async function makeProjects(count: number): Promise<void> {
  await database.query(`insert into control.users (email, name) values ('owner@example.com', 'Olive')`)
  await database.query(
    insertPlans({ max_domains: 'n - 1', max_users: 'n' }, 'from generate_series(1, 4) as n'),
  )
  for (let n = 0; n < count; n++) {
    const name = [
      chance.pick(words),
      chance.pick(words),
      ...(chance.happens(0.5) ? [String(chance.below(9))] : []),
    ]
    const [project] = await database.query<{ id: string }>(
      `insert into control.projects (user_id, name, is_locked, plan_id, admin_plan_id) values (1, $1, $2, $3, $4) returning id`,
      [name.join(' '), chance.happens(0.1), 1 + chance.below(3), chance.happens(0.1) ? 4 : null],
    )
    await database.query(
      'insert into control.project_stats (project_id, computed_score, score_offset) values ($1, $2, $3)',
      [project?.id, chance.below(101), chance.pick([0, 0, 5, -30])],
    )
    await database.query(
      `insert into control.members (project_id, email, role)
       select $1, n || '@example.com', 'viewer' from generate_series(1, $2) as n`,
      [project?.id, chance.below(5)],
    )
    await database.query(
      `insert into control.domains (project_id, name, mta_provider, ownership_token)
       select $1, n || '.example', 'ses', '' from generate_series(1, $2) as n`,
      [project?.id, chance.below(4)],
    )
  }
}

async function readProjects(): Promise<Model[]> {
  const rows = await database.query<Model>(`
    select projects.id::int, projects.name, is_locked, plans.id::int as plan_id, reputation_score as score,
           (select count(*) from control.members where project_id = projects.id) > max_users
             or (select count(*) from control.domains where project_id = projects.id) > max_domains as is_over
      from control.projects
      join control.project_stats on project_id = projects.id
      join control.plans on plans.id = coalesce(admin_plan_id, plan_id)`)
  return rows
}

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)

function expected(all: Model[], search: ProjectSearch): number[] {
  const { q, locked, planId, minScore = 0, maxScore = 100, overLimit, sort } = search
  const key = (project: Model): string | number =>
    ({ id: project.id, name: project.name.toLowerCase(), reputation_score: project.score })[
      sort.replace('-', '') as 'id' | 'name' | 'reputation_score'
    ]
  const found = all
    .filter(({ name }) => q === undefined || name.toLowerCase().includes(q.toLowerCase()))
    .filter(({ is_locked }) => locked === undefined || is_locked === locked)
    .filter(({ plan_id }) => planId === undefined || plan_id === planId)
    .filter(({ score }) => score >= minScore && score <= maxScore)
    .filter(({ is_over }) => overLimit === undefined || is_over === overLimit)
    .sort((a, b) => compare(key(a), key(b)) || a.id - b.id)
    .map(({ id }) => id)
  return sort.startsWith('-') ? found.reverse() : found
}

const maybe = <T>(make: () => T): T | undefined => (chance.happens(0.4) ? make() : undefined)
const sorts: ProjectSort[] = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score']

const randomSearch = (): Omit<ProjectSearch, 'after'> => ({
  q: maybe(() => chance.pick(['a', 'ö', 'ACME', 'me z', '%', '_', 'quix', 'project 1', 'nowhere', 'é', ' '])),
  locked: maybe(() => chance.happens(0.5)),
  planId: maybe(() => 1 + chance.below(5)),
  minScore: maybe(() => chance.below(101)),
  maxScore: maybe(() => chance.below(101)),
  overLimit: maybe(() => chance.happens(0.5)),
  sort: chance.pick(sorts),
  limit: chance.pick([3, 7, 50]),
})

const none = { firstScan: 1, nextScan: 1, fewInIndex: 0, fewInTable: 0, scanMs: 0, searchMs: 25 }
const some = { firstScan: 10, nextScan: 10, fewInIndex: 30, fewInTable: 30, scanMs: 0, searchMs: 25 }
// No time limit.
const candidatesAlone = {
  firstScan: 1,
  nextScan: 1,
  fewInIndex: 1000,
  fewInTable: 1000,
  scanMs: 60_000,
  searchMs: 10_000,
}

async function assertFound(search: Omit<ProjectSearch, 'after'>, bounds: typeof projectBounds) {
  const found = await searchToEnd(
    (after) => db.read((tx) => searchProjects(tx, { ...search, after }, bounds)),
    search.limit,
  )
  assert.deepEqual(
    found.ids,
    expected(projects, { ...search, after: undefined }),
    JSON.stringify({ search, bounds }),
  )
  return found
}

describe('project search', () => {
  test('returns all matches in order, for any filters and scan bounds', async (t) => {
    t.diagnostic(`seed ${chance.seed}`)
    let shortPages = 0
    for (let n = 0; n < 80; n++) {
      const found = await assertFound(randomSearch(), chance.pick([projectBounds, some, candidatesAlone]))
      shortPages += found.shortPages
    }
    assert.ok(shortPages > 5, `only ${shortPages} pages were short`)
  })

  test('reaches the end with pages of one row', async () => {
    for (const sort of ['name', '-reputation_score'] as const) {
      await assertFound({ q: 'quixotic', minScore: 80, sort, limit: 50 }, none)
    }
  })

  test('returns all matches of a rare filter on one page, regardless of their position', async () => {
    for (const filter of [{ overLimit: true }, { maxScore: 30 }, { q: 'quixotic' }]) {
      // In a list sorted by score, a range of scores is contiguous anyway.
      for (const sort of sorts.filter((name) => !('maxScore' in filter && name.endsWith('score')))) {
        const { pages, ids } = await assertFound({ ...filter, sort, limit: 600 }, candidatesAlone)
        assert.ok(pages === 1 && ids.length > 0, `${JSON.stringify(filter)}, ${sort}: ${pages} pages`)
      }
    }
  })
})

describe('the listing', () => {
  const listed = () =>
    database.query(`
      select project_id, folded_name, is_locked, plan_id, reputation_score, member_count, domain_count
        from control.project_listing order by 1`)
  const recounted = () =>
    database.query(`
      select id as project_id, lower(name) as folded_name, is_locked, coalesce(admin_plan_id, plan_id) as plan_id,
             reputation_score,
             (select count(*)::int from control.members where project_id = projects.id) as member_count,
             (select count(*)::int from control.domains where project_id = projects.id) as domain_count
        from control.projects join control.project_stats on project_id = id order by 1`)

  test('is updated in the transaction of every change to the copied columns', async () => {
    const changes = [
      `update control.projects set name = upper(name) || 'É', is_locked = not is_locked where id % 3 = 0`,
      'update control.projects set admin_plan_id = 2 where id % 5 = 0',
      'update control.projects set admin_plan_id = null, plan_id = 3 where id % 7 = 0',
      'update control.project_stats set computed_score = 3, bounced = 9 where project_id % 4 = 0',
      'update control.project_stats set score_offset = 100 where project_id % 6 = 0',
      'delete from control.members where id % 3 = 0',
      'delete from control.domains where id % 2 = 0',
      `insert into control.members (project_id, email, role) select id, 'new@example.com', 'viewer' from control.projects`,
      `insert into control.members (project_id, email, role) values (1, 'new@example.com', 'viewer') on conflict do nothing`,
    ]
    for (const change of changes) {
      await database.query(change)
      assert.deepEqual(await listed(), await recounted(), change)
    }
    await database.query('begin; delete from control.members; rollback')
    assert.deepEqual(await listed(), await recounted())
  })

  test('is not updated by changes to other columns, and no plane can write it', async () => {
    const versions = () =>
      database.query('select project_id, xmin::text from control.project_listing order by 1')
    const before = await versions()
    await database.query('update control.project_stats set bounced = bounced + 1, failed = 2, complained = 3')
    await database.query(
      `update control.projects set version = version + 1, allow_service_mta = true, updated_at = now()`,
    )
    await database.query(`update control.members set role = 'developer'`)
    await database.query('update control.plans set max_users = 0, max_domains = 0')
    assert.deepEqual(await versions(), before)
    for (const role of ['admin', 'customer', 'mail', 'identity', 'readonly']) {
      for (const act of ['insert', 'update', 'delete', 'truncate']) {
        const [may] = await database.query<{ may: boolean }>(
          `select has_table_privilege('postern_${role}', 'control.project_listing', $1) as may`,
          [act],
        )
        assert.equal(may?.may, false, `${role} may ${act}`)
      }
    }
  })

  test('counts correctly under concurrent inserts and deletes', async () => {
    const add = (n: number) =>
      database.query(`insert into control.members (project_id, email, role) values (1, $1, 'viewer')`, [
        `rush${n}`,
      ])
    await Promise.all(Array.from({ length: 50 }, (_, n) => add(n)))
    await Promise.all(
      Array.from({ length: 25 }, (_, n) =>
        database.query('delete from control.members where project_id = 1 and email = $1', [`rush${2 * n}`]),
      ),
    )
    assert.deepEqual(await listed(), await recounted())
  })
})
