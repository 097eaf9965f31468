import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { insertPlans } from '../../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { searchBounds, searchEverything } from './search.ts'
import { kinds } from './wire.ts'

/** Compares searches with a scan of all rows. */
const chance = new Chance(seed)
const database = await testDatabase()
const db = openDatabase(database).as('admin')

interface Thing {
  type: (typeof kinds)[number]
  id: number
  project_id: number | null
  project_name: string | null
  label: string
  /** The searchable texts. */
  texts: string[]
}

const words = [
  'Acme',
  'acme',
  'Zürich',
  'Öl',
  'a',
  'B',
  '100%',
  'snake_case',
  'Shop',
  'Quixotic',
  'é',
  '7',
  '12',
]
const labels = ['acme', 'shop', 'a', 'mail', 'quixotic', 'xn--zrich-kva', 'b2', '100']
await makeThings(150)
const things = await readThings()

async function makeThings(count: number): Promise<void> {
  await database.query(insertPlans())
  for (let n = 1; n <= count; n++) {
    const [user] = await database.query<{ id: string }>(
      'insert into control.users (email, name) values ($1, $2) returning id',
      [
        `${chance.pick(labels)}.${n}@${chance.pick(labels)}.example`,
        chance.happens(0.1) ? '' : `${chance.pick(words)} ${n}`,
      ],
    )
    const name = chance.happens(0.2) ? chance.pick(words) : `${chance.pick(words)} ${chance.pick(words)}`
    const [project] = await database.query<{ id: string }>(
      'insert into control.projects (user_id, name, plan_id) values ($1, $2, 1) returning id',
      [user?.id, name],
    )
    await database.query('insert into control.project_stats (project_id) values ($1)', [project?.id])
    const domain = `${chance.pick(labels)}.${chance.pick(labels)}.example`
    const [{ id: domainId } = { id: '' }] = await database.query<{ id: string }>(
      `insert into control.domains (project_id, name, mta_provider, ownership_token) values ($1, $2, 'ses', '') returning id`,
      [project?.id, domain],
    )
    await database.query(
      `insert into control.routes (project_id, domain_id, match, address, action) values
         ($1, $2, 'address', $3, 'drop'), ($1, $2, 'catch_all', null, 'drop')`,
      [project?.id, domainId, `${chance.pick(labels)}@${domain}`],
    )
  }
}

function readThings(): Promise<Thing[]> {
  return database.query<Thing>(`
    select 'project' as type, id::int, id::int as project_id, name as project_name, name as label, array[lower(name)] as texts
      from control.projects
    union all
    select 'domain', one.id::int, projects.id::int, projects.name, one.name, array[one.name]
      from control.domains as one join control.projects on projects.id = project_id
    union all
    select 'route', one.id::int, projects.id::int, projects.name, address, array[address]
      from control.routes as one join control.projects on projects.id = project_id where address is not null
    union all
    select 'user', id::int, null, null, concat_ws(' ', nullif(name, ''), case name when '' then email else '<' || email || '>' end),
           array[email, lower(name)]
      from control.users`)
}

/** 0 is an exact match, 3 is no match. */
function rankOf(thing: Thing, q: string): number {
  const wanted = q.toLowerCase()
  if (thing.type === 'project' && String(thing.id) === q) return 0
  const ranks = thing.texts.map((text) =>
    text === wanted ? 0 : text.startsWith(wanted) ? 1 : text.includes(wanted) ? 2 : 3,
  )
  return Math.min(...ranks)
}

const find = (q: string, bounds = searchBounds) => db.read((tx) => searchEverything(tx, q, bounds))

// No time limit.
const unhurried = { ...searchBounds, scanMs: 60_000, searchMs: 10_000 }
const byTrigramsAlone = { ...unhurried, newest: 1 }

const asked = () =>
  chance.pick([
    () => chance.pick(words),
    () => chance.pick(labels),
    () => chance.pick(['@', '%', '_', '.exa', 'e ', 'nowhere', 'ZÜR', 'ö', '.example', 'acme.acme', '\\']),
    () => String(1 + chance.below(200)),
    () => {
      const text = chance.pick(chance.pick(things).texts)
      const start = chance.below(Math.max(1, text.length))
      return text.slice(start, start + 1 + chance.below(12)).trim() || 'a'
    },
  ])()

describe('search', () => {
  test('returns the best 20 matches of all kinds', async (t) => {
    t.diagnostic(`seed ${chance.seed}`)
    for (let n = 0; n < 300; n++) {
      const q = asked()
      const found = await find(q, unhurried)
      const ranks = things.map((thing) => rankOf(thing, q)).filter((rank) => rank < 3)
      const best = ranks.toSorted((a, b) => a - b).slice(0, 20)
      const got = found.map(({ type, id }) =>
        rankOf(things.find((one) => one.type === type && one.id === id) ?? assert.fail(), q),
      )
      assert.deepEqual(got, best, `"${q}"`)
      assert.equal(new Set(found.map(({ type, id }) => `${type} ${id}`)).size, found.length, `"${q}"`)
    }
  })

  test('finds rare matches of any age for a text of three letters', async () => {
    for (const thing of things.filter(({ id }) => id % 10 === 1)) {
      const q = (thing.texts[0] ?? '').slice(1)
      if (q.trim().length < 3 || things.filter((one) => rankOf(one, q) < 3).length > 20) continue
      const found = await find(q, byTrigramsAlone)
      assert.ok(
        found.some(({ type, id }) => type === thing.type && id === thing.id),
        `"${q}" of ${thing.type} ${thing.id}`,
      )
    }
  })

  test('returns the name and the project of each match', async () => {
    for (const { texts, ...thing } of things.filter(({ id }) => id % 15 === 1)) {
      const found = await find(texts[0] ?? '', { ...unhurried, limit: 1000, fewInTable: 1000 })
      assert.deepEqual(
        found.find(({ type, id }) => type === thing.type && id === thing.id),
        thing,
      )
    }
  })

  test('alternates between the kinds when all matches rank equally', async () => {
    const found = await find('acme', unhurried)
    const starts = found.filter(({ type, id }) => {
      const thing = things.find((one) => one.type === type && one.id === id) ?? assert.fail()
      return rankOf(thing, 'acme') === 1
    })
    assert.deepEqual(
      starts.slice(0, 4).map(({ type }) => type),
      kinds,
    )
  })

  test('ranks the project with the specified id first, and accepts only the canonical form of the id', async () => {
    const [first] = await find('17')
    assert.deepEqual([first?.type, first?.id], ['project', 17])
    for (const q of ['017', '1.7e1', '99999999999999999999']) {
      assert.ok(
        (await find(q)).every(({ type, id }) => type !== 'project' || id !== 17),
        q,
      )
    }
  })

  test('returns the matches found so far when the time is up', async () => {
    const hurried = { ...searchBounds, newest: 5, scanMs: 0 }
    const found = await find('cme', hurried)
    assert.ok(found.length > 0 && found.length < (await find('cme', unhurried)).length)
  })
})
