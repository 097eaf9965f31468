import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { domainRows } from '../../testing/fixtures/domain-rows.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

/** domains.edit: the effects on routes. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeRoute, allowServiceMta } = fixtures(database, admin)
const { addressRoute, catchAll, routes } = domainRows(database)

interface Domain {
  id: number
  project_id: number
}
const pathOf = ({ id, project_id }: Domain) => `/projects/${project_id}/domains/${id}`
const edit = (domain: Domain, body: object): Promise<Answer> => admin.patch(pathOf(domain), body)
const show = async (domain: Domain) => (await admin.get(pathOf(domain))).body

/** old.example.com with two address routes, one of them inactive, and a catch-all. */
async function makeRouted() {
  const project = await makeProject()
  const domain = await makeDomain(project.id, { name: 'old.example.com' })
  return {
    domain,
    info: await addressRoute(domain, 'info@old.example.com'),
    asleep: await addressRoute(domain, 'a.sleep+1@old.example.com', { isActive: false }),
    rest: await catchAll(domain),
  }
}

const untouched = { version: 1, was_touched: false }
const touched = { version: 2, was_touched: true }

async function assertUnresolved(domain: Domain, body: object, message: RegExp): Promise<void> {
  const [shown, rows] = [await show(domain), await routes(domain.id)]
  for (const query of ['', '?dry_run=true']) {
    const answer = await admin.patch(pathOf(domain) + query, { reason: 'With a reason, too', ...body })
    assertProblem(answer, 422, 'address_routes_unresolved')
    assert.match(answer.body.message, message)
    assert.equal(await auditRowOf(database, answer), undefined)
  }
  assert.deepEqual(await show(domain), shown)
  assert.deepEqual(await routes(domain.id), rows)
}

describe('domains.edit of a domain with address routes', () => {
  test('keeps their local parts on request, including those of inactive routes, and the catch-all follows', async () => {
    const { domain, info, asleep, rest } = await makeRouted()
    const answer = await edit(domain, { name: 'new.example.org', preserve_local_parts: true })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await routes(domain.id), [
      { id: info, address: 'info@new.example.org', is_active: true, ...touched },
      { id: asleep, address: 'a.sleep+1@new.example.org', is_active: false, ...touched },
      { id: rest, address: null, is_active: true, ...untouched },
    ])
    assert.deepEqual(await related(answer), [
      moved(info, 'info@old.example.com', 'info@new.example.org'),
      moved(asleep, 'a.sleep+1@old.example.com', 'a.sleep+1@new.example.org'),
    ])
  })

  test('gives each route its replacement address', async () => {
    const { domain, info, asleep, rest } = await makeRouted()
    const answer = await edit(domain, {
      name: 'new.example.org',
      preserve_local_parts: false,
      route_replacements: [
        { route_id: asleep, address: 'Info@NEW.example.org' },
        { route_id: info, address: 'support@new.example.org' },
      ],
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await routes(domain.id), [
      { id: info, address: 'support@new.example.org', is_active: true, ...touched },
      { id: asleep, address: 'info@new.example.org', is_active: false, ...touched },
      { id: rest, address: null, is_active: true, ...untouched },
    ])
    assert.deepEqual(await related(answer), [
      moved(info, 'info@old.example.com', 'support@new.example.org'),
      moved(asleep, 'a.sleep+1@old.example.com', 'info@new.example.org'),
    ])
  })

  test('lets two routes swap addresses', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'swap.example.com' })
    const [one, two] = [
      await addressRoute(domain, 'one@swap.example.com'),
      await addressRoute(domain, 'two@swap.example.com'),
    ]
    const answer = await edit(domain, {
      name: 'swapped.example.com',
      route_replacements: [
        { route_id: one, address: 'two@swapped.example.com' },
        { route_id: two, address: 'one@swapped.example.com' },
      ],
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(
      (await routes(domain.id)).map(({ address }) => address),
      ['two@swapped.example.com', 'one@swapped.example.com'],
    )
  })

  test('rejects a body with neither choice, and the error names the routes', async () => {
    const { domain, info, asleep } = await makeRouted()
    const named = new RegExp(
      `${info} \\(info@old\\.example\\.com\\), ${asleep} \\(a\\.sleep\\+1@old\\.example\\.com\\)`,
    )
    await assertUnresolved(domain, { name: 'new.example.org' }, named)
    await assertUnresolved(domain, { name: 'new.example.org', preserve_local_parts: false }, named)
  })

  test('names at most ten routes', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'many.example.com' })
    for (let n = 0; n < 12; n++) await addressRoute(domain, `n${n}@many.example.com`)
    await assertUnresolved(domain, { name: 'few.example.com' }, /n9@many\.example\.com\) and 2 more\./)
  })

  test('rejects a body with both choices', async () => {
    const { domain, info, asleep } = await makeRouted()
    const route_replacements = [
      { route_id: info, address: 'info@new.example.org' },
      { route_id: asleep, address: 'asleep@new.example.org' },
    ]
    const both = { preserve_local_parts: true, route_replacements }
    await assertUnresolved(
      domain,
      { name: 'new.example.org', ...both },
      new RegExp(`cannot be combined.*: ${info} .*${asleep} `),
    )
    await assertUnresolved(domain, { mta_provider: 'ses', ...both }, /cannot be combined/)
    const empty = { preserve_local_parts: true, route_replacements: [] }
    await assertUnresolved(domain, { name: 'new.example.org', ...empty }, /cannot be combined/)
  })

  test('is rejected if a route already forwards to the new name', async () => {
    const { domain } = await makeRouted()
    const { id: forwards } = await makeRoute(domain.project_id, {
      domain_id: domain.id,
      match: 'address',
      address: 'all@old.example.com',
      action: 'forward',
      forward_to: 'All@NEW.example.org',
    })
    await assertUnresolved(
      domain,
      { name: 'new.example.org', preserve_local_parts: true },
      new RegExp(`forward to new\\.example\\.org.*: ${forwards} `),
    )
    const other = await edit(domain, { name: 'newer.example.org', preserve_local_parts: true })
    assert.equal(other.status, 200, other.text)
  })

  test('rejects replacements that do not match, and names them', async () => {
    const { domain, info, asleep, rest } = await makeRouted()
    const other = await makeDomain(domain.project_id, { name: 'other.example.com' })
    const foreign = await addressRoute(other, 'info@other.example.com')
    const elsewhere = await makeRouted()
    const good = [
      { route_id: info, address: 'info@new.example.org' },
      { route_id: asleep, address: 'asleep@new.example.org' },
    ]
    const withInfoAt = (address: string) => [{ route_id: info, address }, good[1]]
    const cases: [replacements: unknown[], message: RegExp][] = [
      [[], new RegExp(`lacks these routes: ${info} .*${asleep} `)],
      [[good[0]], new RegExp(`lacks these routes: ${asleep} \\(a`)],
      [
        [...good, { route_id: rest, address: 'rest@new.example.org' }],
        new RegExp(`not address routes.*: ${rest}\\.`),
      ],
      [[...good, { route_id: foreign, address: 'x@new.example.org' }], new RegExp(`: ${foreign}\\.`)],
      [
        [...good, { route_id: elsewhere.info, address: 'x@new.example.org' }],
        new RegExp(`: ${elsewhere.info}\\.`),
      ],
      [[...good, { route_id: 999_999_999, address: 'x@new.example.org' }], /: 999999999\./],
      [[...good, { route_id: info, address: 'more@new.example.org' }], /more than once: \d+/],
      [withInfoAt('asleep@new.example.org'), new RegExp(`have the same address: ${info} .*${asleep} `)],
      [withInfoAt('ASLEEP@new.example.org'), new RegExp(`have the same address: ${info} .*${asleep} `)],
      [withInfoAt('info@old.example.com'), new RegExp(`route ${info} is not under new\\.example\\.org`)],
      [withInfoAt('info@sub.new.example.org'), /is not under/],
      [withInfoAt('info@new.example.org.evil.example'), /is not under/],
      [withInfoAt('info'), new RegExp(`route ${info} has no @`)],
      [withInfoAt('@new.example.org'), /before the @/],
      [withInfoAt('a b@new.example.org'), /ASCII without spaces/],
      [withInfoAt('ïnfo@new.example.org'), /ASCII/],
      [withInfoAt(''), /has no @/],
      [withInfoAt(`${'x'.repeat(65)}@new.example.org`), /64 characters/],
    ]
    for (const [route_replacements, message] of cases) {
      await assertUnresolved(domain, { name: 'new.example.org', route_replacements }, message)
    }
  })

  test('is rejected if an address is too long with the new name', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'short.example.com' })
    const local = 'x'.repeat(64)
    const long = await addressRoute(domain, `${local}@short.example.com`)
    const name = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(60)}.example.com`
    const body = { name, preserve_local_parts: true }
    await assertUnresolved(domain, body, new RegExp(`too long: ${long} `))
    const route_replacements = [{ route_id: long, address: `x@${name}` }]
    assert.equal((await edit(domain, { name, route_replacements })).status, 200)
  })

  test('of only the provider does not change them, with or without preserve_local_parts', async () => {
    const { domain } = await makeRouted()
    await allowServiceMta(domain.project_id)
    const before = await routes(domain.id)
    for (const body of [
      { mta_provider: 'service' },
      { mta_provider: 'ses', preserve_local_parts: true },
      { mta_provider: 'service', preserve_local_parts: false },
      { mta_provider: 'ses', route_replacements: [] },
    ]) {
      const answer = await edit(domain, body)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(await related(answer), null)
    }
    assert.deepEqual(await routes(domain.id), before)
  })

  test('to the same name does not change them, and rejects replacements', async () => {
    const { domain, info, asleep } = await makeRouted()
    const before = await routes(domain.id)
    for (const body of [
      { name: 'old.example.com' },
      { name: 'OLD.example.com.', preserve_local_parts: true },
      { name: 'old.example.com', mta_provider: 'ses' },
    ]) {
      assert.equal((await edit(domain, body)).status, 200)
    }
    assert.deepEqual(await routes(domain.id), before)
    const route_replacements = [
      { route_id: info, address: 'x@old.example.com' },
      { route_id: asleep, address: 'y@old.example.com' },
    ]
    await assertUnresolved(domain, { name: 'old.example.com', route_replacements }, /does not change/)
  })

  test("does not change other domains' routes", async () => {
    const { domain } = await makeRouted()
    const other = await makeDomain(domain.project_id, { name: 'beside.example.com' })
    await addressRoute(other, 'info@beside.example.com')
    const elsewhere = await makeRouted()
    const before = [await routes(other.id), await routes(elsewhere.domain.id)]
    await edit(domain, { name: 'new.example.org', preserve_local_parts: true })
    assert.deepEqual([await routes(other.id), await routes(elsewhere.domain.id)], before)
  })
})

describe('domains.edit of a domain without address routes', () => {
  test('requires no choice, and accepts one without effect', async () => {
    const project = await makeProject()
    const domain = await makeDomain(project.id, { name: 'plain.example.com' })
    const rest = await catchAll(domain)
    const words = [
      {},
      { preserve_local_parts: true },
      { preserve_local_parts: false },
      { route_replacements: [] },
    ]
    for (const [n, word] of words.entries()) {
      const answer = await edit(domain, { name: `plain${n}.example.com`, ...word })
      assert.equal(answer.status, 200, answer.text)
      assert.equal(await related(answer), null)
    }
    assert.deepEqual(await routes(domain.id), [{ id: rest, address: null, is_active: true, ...untouched }])
    await assertUnresolved(
      domain,
      {
        name: 'plain9.example.com',
        route_replacements: [{ route_id: rest, address: 'a@plain9.example.com' }],
      },
      /not address routes/,
    )
  })
})

const moved = (id: number, before: string, after: string) => ({
  resource: 'route',
  id,
  before: { address: before },
  after: { address: after },
})

async function related(answer: Answer): Promise<unknown> {
  const row = await auditRowOf(database, answer)
  return (row as unknown as { related: unknown }).related
}
