import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { createNetGuard } from '../../../platform/net/net-guard.ts'
import { insertPlans } from '../../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { resolverAt } from '../../../testing/peers/dns.ts'
import { eventTypes } from '../../shared/events.ts'
import { Vault } from '../secrets/vault.ts'
import {
  createEndpoint,
  deleteEndpoint,
  type EndpointConfig,
  type EndpointRow,
  editEndpoint,
  endpointView,
  findEndpoint,
  listEndpoints,
  lockEndpoint,
  rotateEndpointSecret,
} from './endpoints.ts'

const database = await testDatabase()
const opened = openDatabase(database)
const db = opened.as('admin')
const vault = new Vault([{ id: '1', key: randomBytes(32) }])
const guardFor = (...ports: number[]) =>
  createNetGuard({ resolver: resolverAt('127.0.0.1:9'), allowedNetworks: [], ports })
const deps = { vault, guard: guardFor(443) }

const config: EndpointConfig = {
  name: 'Bills',
  url: 'https://example.com/hook',
  events: ['message.delivered', 'message.bounced'],
  is_active: true,
}

let mine = 0
let theirs = 0

beforeEach(async () => {
  const rows = await database.query<{ id: string }>(
    `with person as (insert into control.users (email, name)
                     values (gen_random_uuid() || '@example.com', 'Owner') returning id),
          plan as (${insertPlans()} returning id)
     insert into control.projects (user_id, name, plan_id)
     select person.id, 'Project ' || n, plan.id from person, plan, generate_series(1, 2) n returning id`,
  )
  ;[mine = 0, theirs = 0] = rows.map(({ id }) => Number(id))
})

const create = (changes: Partial<EndpointConfig> = {}, projectId = mine) =>
  db.transaction((tx) => createEndpoint(tx, deps, projectId, { ...config, ...changes }))

const edit = (id: number, changes: Partial<EndpointConfig>) =>
  db.transaction(async (tx) =>
    editEndpoint(tx, deps, await lockEndpoint(tx, mine, id), { ...config, ...changes }),
  )

const find = (id: number) => db.read((tx) => findEndpoint(tx, mine, id))

const sealedSecret = async (id: number): Promise<Buffer> => {
  const [row] = await database.query<{ encrypted_secret: Buffer }>(
    'select encrypted_secret from control.endpoints where id = $1',
    [id],
  )
  return row?.encrypted_secret ?? assert.fail()
}

const openSecret = (id: number, sealed: Buffer) =>
  db.read((tx) =>
    vault.open(tx, mine, { table: 'control.endpoints', column: 'encrypted_secret', rowId: id }, sealed),
  )

const fails = async (work: Promise<unknown>, code: string, message: RegExp | string): Promise<void> => {
  const error = await work.then(
    () => assert.fail('the call succeeded'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof PosternError, String(error))
  assert.equal(error.code, code)
  if (typeof message === 'string') assert.equal(error.message, message)
  else assert.match(error.message, message)
}

describe('creating an endpoint', () => {
  test('returns a secret, of which the database stores only the encrypted form and the last four characters', async () => {
    const { row, secret } = await create()
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(Buffer.from(secret.slice(6), 'base64').length, 32)
    assert.equal(row.secret_hint, secret.slice(-5, -1))
    assert.equal(await openSecret(row.id, await sealedSecret(row.id)), secret)
    assert.ok(!('encrypted_secret' in row) && !('encrypted_secret' in (await find(row.id))))
    const [dumped] = await database.query('select endpoints::text from control.endpoints where id = $1', [
      row.id,
    ])
    assert.ok(!JSON.stringify(dumped).includes(secret.slice(6, 20)))
  })

  test('stores the configuration in its normalized form', async () => {
    const { row } = await create({
      name: '  Bills ',
      url: 'HTTPS://EXAMPLE.com',
      events: ['project.locked', 'message.sent', 'project.locked'],
      is_active: false,
    })
    assert.equal(row.name, 'Bills')
    assert.equal(row.url, 'https://example.com/')
    assert.deepEqual(row.events, ['message.sent', 'project.locked'])
    assert.equal(row.is_active, false)
    assert.equal(row.version, 1)
    assert.deepEqual(await find(row.id), row)
  })

  test('accepts all events or none, but no unknown event', async () => {
    assert.deepEqual((await create({ events: [...eventTypes].reverse() })).row.events, eventTypes)
    assert.deepEqual((await create({ events: [] })).row.events, [])
    await fails(create({ events: ['message.sent', 'message.lost'] }), 'validation_failed', /"message\.lost"/)
  })

  test('rejects an invalid name or URL', async () => {
    await fails(create({ name: ' ' }), 'validation_failed', /^"name"/)
    await fails(create({ url: 'http://example.com' }), 'validation_failed', /^"url"/)
  })

  test('is allowed for a customer in their own project', async () => {
    const customer = opened.asCustomer().forProject(mine)
    const { row } = await customer.transaction((tx) => createEndpoint(tx, deps, mine, config))
    assert.deepEqual(await customer.read((tx) => listEndpoints(tx, mine, { limit: 10 })), [row])
    await assert.rejects(
      customer.transaction((tx) => createEndpoint(tx, deps, theirs, config)),
      /row-level security/,
    )
  })
})

describe('finding endpoints', () => {
  test('another project’s endpoint gets the same error as one that does not exist', async () => {
    const { row } = await create({}, theirs)
    for (const id of [row.id, 999_999_999]) {
      const missing = `There is no endpoint ${id} in project ${mine}.`
      await fails(find(id), 'not_found', missing)
      await fails(
        db.transaction((tx) => lockEndpoint(tx, mine, id)),
        'not_found',
        missing,
      )
    }
  })

  test('a list contains the project’s endpoints, newest first, in pages', async () => {
    const made: EndpointRow[] = []
    for (let n = 0; n < 5; n++) made.unshift((await create()).row)
    await create({}, theirs)
    const page = (limit: number, beforeId?: number) =>
      db.read((tx) => listEndpoints(tx, mine, { limit, beforeId }))
    assert.deepEqual(await page(10), made)
    const first = await page(2)
    assert.deepEqual(first, made.slice(0, 2))
    const second = await page(2, first.at(-1)?.id)
    assert.deepEqual(second, made.slice(2, 4))
    assert.deepEqual(await page(2, second.at(-1)?.id), made.slice(4))
    assert.deepEqual(await page(2, made.at(-1)?.id), [])
  })

  test('delivery statistics are shown with an endpoint and do not change its configuration', async () => {
    const { row } = await create()
    await database.query(
      `insert into control.endpoint_stats (endpoint_id, project_id, last_success_at, consecutive_failures)
       values ($1, $2, '2026-11-14T09:30:00Z', 3)`,
      [row.id, mine],
    )
    const lastSuccess = new Date('2026-11-14T09:30:00Z')
    const seen = { ...row, last_success_at: lastSuccess, consecutive_failures: 3 }
    assert.deepEqual(await find(row.id), seen)
    assert.deepEqual(await db.read((tx) => listEndpoints(tx, mine, { limit: 1 })), [seen])
    const renamed = await edit(row.id, { name: 'Renamed' })
    assert.deepEqual(await find(row.id), renamed)
    assert.equal(renamed.consecutive_failures, 3)
  })

  test("a view has an endpoint's fields in order, with times in UTC and milliseconds", async () => {
    const { row } = await create()
    const at = new Date('2026-11-14T09:30:00Z')
    const full = { ...row, secret_rotated_at: at, last_success_at: at, created_at: at, updated_at: at }
    assert.deepEqual(Object.entries(endpointView(full)), [
      ['id', row.id],
      ['project_id', mine],
      ['name', 'Bills'],
      ['url', 'https://example.com/hook'],
      ['events', ['message.delivered', 'message.bounced']],
      ['is_active', true],
      ['disabled_reason', null],
      ['secret_hint', row.secret_hint],
      ['secret_rotated_at', '2026-11-14T09:30:00.000Z'],
      ['last_success_at', '2026-11-14T09:30:00.000Z'],
      ['consecutive_failures', 0],
      ['created_at', '2026-11-14T09:30:00.000Z'],
      ['updated_at', '2026-11-14T09:30:00.000Z'],
    ])
    const { secret_rotated_at, last_success_at } = endpointView(row)
    assert.deepEqual([secret_rotated_at, last_success_at], [null, null])
  })
})

describe('editing an endpoint', () => {
  test('changes version and update time, but not the secret', async () => {
    const { row } = await create()
    const sealed = await sealedSecret(row.id)
    const after = await edit(row.id, { url: 'https://example.org/other', events: [] })
    assert.equal(after.url, 'https://example.org/other')
    assert.deepEqual(after.events, [])
    assert.equal(after.version, 2)
    assert.ok(after.updated_at > row.updated_at)
    assert.deepEqual(after.created_at, row.created_at)
    assert.deepEqual(await find(row.id), after)
    assert.deepEqual(await sealedSecret(row.id), sealed)
  })

  test('changes nothing if the normalized form is the same', async () => {
    const { row } = await create()
    await db.transaction(async (tx) => {
      const before = await lockEndpoint(tx, mine, row.id)
      const same = { ...config, name: ' Bills ', events: [...config.events].reverse() }
      assert.equal(await editEndpoint(tx, deps, before, same), before)
    })
    assert.deepEqual(await find(row.id), row)
  })

  test('clears the disabled reason only when the endpoint is enabled', async () => {
    const { row } = await create()
    await database.query(
      `update control.endpoints set is_active = false, disabled_reason = 'It failed for three days.' where id = $1`,
      [row.id],
    )
    const renamed = await edit(row.id, { name: 'Renamed', is_active: false })
    assert.equal(renamed.disabled_reason, 'It failed for three days.')
    const active = await edit(row.id, { name: 'Renamed', is_active: true })
    assert.deepEqual([active.is_active, active.disabled_reason], [true, null])
    const inactive = await edit(row.id, { name: 'Renamed', is_active: false })
    assert.deepEqual([inactive.is_active, inactive.disabled_reason], [false, null])
  })

  test('rejects a new URL that is not allowed, and accepts an unchanged one', async () => {
    const url = 'https://example.com:8443/hook'
    const { row } = await db.transaction((tx) =>
      createEndpoint(tx, { vault, guard: guardFor(8443) }, mine, { ...config, url }),
    )
    const off = await edit(row.id, { url, is_active: false })
    assert.deepEqual([off.url, off.is_active], [url, false])
    for (const other of ['https://example.com:8443/other', 'https://10.0.0.1/hook']) {
      await assert.rejects(
        edit(row.id, { url: other }),
        (error) => error instanceof PosternError && /^"url" is not allowed\. /.test(error.message),
      )
    }
  })

  test('does not change other endpoints', async () => {
    const [{ row }, { row: other }] = [await create(), await create()]
    await edit(row.id, { name: 'Renamed' })
    assert.deepEqual(await find(other.id), other)
  })
})

describe('rotating the secret', () => {
  const rotate = (id: number) =>
    db.transaction(async (tx) => rotateEndpointSecret(tx, vault, await lockEndpoint(tx, mine, id)))

  test('replaces the stored secret, and the old one cannot be recovered', async () => {
    const { row, secret: old } = await create()
    const before = await sealedSecret(row.id)
    const { row: after, secret } = await rotate(row.id)
    assert.notEqual(secret, old)
    const sealed = await sealedSecret(row.id)
    assert.ok(!sealed.equals(before))
    assert.equal(await openSecret(row.id, sealed), secret)
    assert.equal(after.secret_hint, secret.slice(-5, -1))
    assert.equal(after.version, 2)
    assert.deepEqual(after.secret_rotated_at, after.updated_at)
    assert.deepEqual(await find(row.id), after)
  })

  test('twice concurrently leaves one valid secret, that of the second rotation', async () => {
    const { row } = await create()
    const outcomes = await Promise.all([rotate(row.id), rotate(row.id)])
    const last = outcomes.find((outcome) => outcome.row.version === 3) ?? assert.fail()
    assert.ok(outcomes.some((outcome) => outcome.row.version === 2))
    assert.equal(await openSecret(row.id, await sealedSecret(row.id)), last.secret)
  })
})

describe('deleting an endpoint', () => {
  const remove = (id: number) =>
    db.transaction(async (tx) => deleteEndpoint(tx, await lockEndpoint(tx, mine, id)))

  const makeDomain = async (): Promise<number> => {
    const [domain] = await database.query<{ id: string }>(
      `insert into control.domains (project_id, name, mta_provider, ownership_token)
       values ($1, 'example.com', 'service', 'token') returning id`,
      [mine],
    )
    return Number(domain?.id)
  }

  const addRoutes = async (endpointId: number, domainId: number, count: number): Promise<number[]> => {
    const rows = await database.query<{ id: string }>(
      `insert into control.routes (project_id, domain_id, match, address, action, endpoint_id)
       select $1, $2, 'address', n || '-' || $3::bigint || '@example.com', 'endpoint', $3::bigint
         from generate_series(1, $4::int) n returning id`,
      [mine, domainId, endpointId, count],
    )
    return rows.map(({ id }) => Number(id))
  }

  test('removes only this endpoint and its statistics', async () => {
    const [{ row }, { row: other }] = [await create(), await create()]
    await database.query('insert into control.endpoint_stats (endpoint_id, project_id) values ($1, $2)', [
      row.id,
      mine,
    ])
    await remove(row.id)
    await fails(find(row.id), 'not_found', /no endpoint/)
    assert.deepEqual(await find(other.id), other)
    const customer = opened.asCustomer().forProject(mine)
    await customer.transaction(async (tx) => deleteEndpoint(tx, await lockEndpoint(tx, mine, other.id)))
    assert.deepEqual(await db.read((tx) => listEndpoints(tx, mine, { limit: 1 })), [])
  })

  test('is rejected while routes refer to it, and the error names up to ten', async () => {
    const [{ row }, { row: busy }] = [await create(), await create()]
    const domainId = await makeDomain()
    const two = await addRoutes(row.id, domainId, 2)
    await fails(
      remove(row.id),
      'in_use',
      new RegExp(`these routes: ${two.join(', ')}\\. Change or delete the routes`),
    )
    const many = await addRoutes(busy.id, domainId, 12)
    const named = many.slice(0, 10).join(', ')
    await fails(remove(busy.id), 'in_use', new RegExp(`these routes: ${named} and more\\.`))
    assert.deepEqual(await find(row.id), row)
  })

  test('waits for a concurrent creation of a route and is then rejected', async () => {
    const { row } = await create()
    const domainId = await makeDomain()
    const maySettle = Promise.withResolvers<void>()
    const isWritten = Promise.withResolvers<void>()
    const routing = db.transaction(async (tx) => {
      const value = { project_id: mine, domain_id: domainId, match: 'catch_all', action: 'endpoint' }
      await tx
        .insertInto('control.routes')
        .values({ ...value, endpoint_id: row.id })
        .execute()
      isWritten.resolve()
      await maySettle.promise
    })
    await isWritten.promise
    const refused = fails(remove(row.id), 'in_use', /these routes/)
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    while ((await database.query(waits)).length === 0);
    maySettle.resolve()
    await routing
    await refused
  })
})
