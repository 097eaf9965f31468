import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, routeConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain, makeEndpoint, makeRoute } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()
const other = await makeProject()
const domain = await makeDomain(projectId, { name: 'shop.example.com' })
const { resource: endpoint } = await makeEndpoint(projectId)

let numbers = 0
/** An address route that forwards, with a unique address. */
const configuration = () => ({
  ...routeConfiguration,
  domain_id: domain.id,
  match: 'address',
  address: `box${++numbers}@shop.example.com`,
  action: 'forward',
  forward_to: 'ada@example.net',
})
const create = (change: object = {}) =>
  admin.post(`/projects/${projectId}/routing`, { ...configuration(), ...change })
const preview = async (change: object) => {
  const answer = await admin.post(`/projects/${projectId}/routing?dry_run=true`, {
    ...configuration(),
    ...change,
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.body as { effects: string[]; warnings: string[] }
}
const countRoutes = async (): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from control.routes'))[0]?.n ?? 0

async function assertRefused(change: object, message: RegExp): Promise<void> {
  const before = await countRoutes()
  const answer = await create(change)
  assertProblem(answer, 422, 'validation_failed')
  assert.match(answer.body.message, message, JSON.stringify(change))
  await assertNotAudited(answer)
  assert.equal(await countRoutes(), before)
}

describe('routing.create', () => {
  test('creates a route of each action, for an address and as the catch-all', async () => {
    const actions = [
      { action: 'endpoint', endpoint_id: endpoint.id, forward_to: null },
      { action: 'forward', endpoint_id: null, forward_to: 'ada@example.net' },
      { action: 'reject', endpoint_id: null, forward_to: null },
      { action: 'drop', endpoint_id: null, forward_to: null },
    ]
    for (const action of actions) {
      const { id: domain_id, name } = await makeDomain(projectId)
      for (const match of [
        { match: 'address', address: `support@${name}` },
        { match: 'catch_all', address: null },
      ]) {
        const wanted = { domain_id, ...match, ...action, is_active: true }
        const answer = await create(wanted)
        assert.equal(answer.status, 201, answer.text)
        const { id, created_at, updated_at } = answer.body
        assert.deepEqual(answer.body, {
          ...{ id, project_id: projectId, ...wanted, forward_confirmed_at: null, created_at, updated_at },
        })
        assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/routing/${id}`)
        assert.equal(answer.headers.get('etag'), '"1"')
        assert.deepEqual((await admin.get(`/projects/${projectId}/routing/${id}`)).body, answer.body)
        await assertAudited(answer, {
          operation: 'routing.create',
          project_id: projectId,
          resource: ['route', id],
          after: wanted,
        })
      }
    }
  })

  test('is active by default, and records the reason', async () => {
    assert.equal((await create({ is_active: undefined })).body.is_active, true)
    const asleep = await create({ is_active: false, reason: 'Switched on next week' })
    assert.equal(asleep.body.is_active, false)
    const { id, project_id, forward_confirmed_at, created_at, updated_at, ...after } = asleep.body
    await assertAudited(asleep, {
      operation: 'routing.create',
      project_id: projectId,
      resource: ['route', id],
      reason: 'Switched on next week',
      after,
    })
  })

  test('stores the address in lower case, and keeps the case of a forwarding local part', async () => {
    const { body } = await create({
      address: 'Sales.EU+x@SHOP.Example.com',
      forward_to: 'Ada.Lovelace@EXAMPLE.net',
    })
    assert.deepEqual(
      [body.address, body.forward_to],
      ['sales.eu+x@shop.example.com', 'Ada.Lovelace@example.net'],
    )
  })

  test('accepts only an address under the exact name of the domain', async () => {
    for (const address of [
      'a@example.com',
      'a@www.shop.example.com',
      'a@xshop.example.com',
      'a@shop.example.com.evil.example',
      'a@shop.example.org',
    ]) {
      await assertRefused({ address }, /^"address" must be under shop\.example\.com/)
    }
    for (const address of [
      '',
      'support',
      '@shop.example.com',
      'a b@shop.example.com',
      '"a"@shop.example.com',
      'a..b@shop.example.com',
      'ä@shop.example.com',
      'a@shop.example.com.',
      'a@shop.example.com\r\nRCPT TO:<b@shop.example.com>',
      `${'a'.repeat(65)}@shop.example.com`,
      'a@b@shop.example.com',
    ]) {
      await assertRefused({ address }, /^"address" /)
    }
    await assertRefused({ address: `a@${'b'.repeat(260)}.com` }, /"address"/)
    assert.equal((await create({ address: `${'a'.repeat(64)}@shop.example.com` })).status, 201)
  })

  test('accepts one valid forwarding address outside the domain', async () => {
    for (const forward_to of [
      '',
      'ada',
      'ada@localhost',
      'ada@[192.0.2.1]',
      'a@example.net,b@example.net',
      'Ada <ada@example.net>',
      'ada@example.net\n',
      `ada@${'x'.repeat(64)}.example`,
    ]) {
      await assertRefused({ forward_to }, /^"forward_to" /)
    }
    for (const forward_to of ['other@shop.example.com', 'Other@SHOP.EXAMPLE.COM']) {
      await assertRefused({ forward_to }, /^"forward_to" is an address of shop\.example\.com itself/)
    }
    assert.equal((await create({ forward_to: 'ada@www.shop.example.com' })).status, 201)
    assert.equal((await create({ forward_to: 'ada@example.com' })).status, 201)
  })

  test('names fields that do not apply, and fields that are required', async () => {
    await assertRefused({ match: 'catch_all' }, /"address" must be null when "match" is "catch_all"/)
    await assertRefused({ address: null }, /"address" must not be null when "match" is "address"/)
    await assertRefused({ action: 'reject' }, /"forward_to" must be null when "action" is "reject"/)
    await assertRefused({ action: 'drop', endpoint_id: 1 }, /"endpoint_id".*"drop"; "forward_to".*"drop"/)
    await assertRefused({ action: 'endpoint' }, /"endpoint_id" must not be null.*"forward_to" must be null/)
    await assertRefused({ forward_to: null }, /"forward_to" must not be null when "action" is "forward"/)
    await assertRefused({ endpoint_id: endpoint.id }, /"endpoint_id" must be null when "action" is "forward"/)
  })

  test('requires the complete configuration', async () => {
    for (const field of ['domain_id', 'match', 'address', 'action', 'endpoint_id', 'forward_to']) {
      const answer = await create({ [field]: undefined })
      assertProblem(answer, 422, 'incomplete_configuration')
      assert.ok(answer.body.message.includes(`lacks "${field}"`), answer.text)
    }
    await assertRefused({ priority: 1 }, /"priority" is not a field/)
  })

  test("rejects other projects' domains and endpoints", async () => {
    const theirs = await makeDomain(other.id, { name: 'theirs.example.com' })
    const { resource: hook } = await makeEndpoint(other.id)
    const foreign = await create({ domain_id: theirs.id, address: 'a@theirs.example.com' })
    const absent = await create({ domain_id: 999_999_999, address: 'a@theirs.example.com' })
    assertProblem(foreign, 422, 'validation_failed')
    assert.match(foreign.body.message, /^"domain_id" is not a domain of project/)
    assert.equal(foreign.text, absent.text)
    const sent = { action: 'endpoint', forward_to: null }
    const foreignHook = await create({ ...sent, endpoint_id: hook.id })
    const absentHook = await create({ ...sent, endpoint_id: 999_999_999 })
    assertProblem(foreignHook, 422, 'validation_failed')
    assert.match(foreignHook.body.message, /^"endpoint_id" is not an endpoint of project/)
    assert.equal(foreignHook.text, absentHook.text)
  })

  test('rejects a second route for an address in any notation, and a second catch-all', async () => {
    const first = (await create({ address: 'once@shop.example.com' })).body
    const before = await countRoutes()
    for (const change of [
      { address: 'once@shop.example.com' },
      { address: 'ONCE@Shop.Example.com', is_active: false },
    ]) {
      const answer = await create(change)
      assertProblem(answer, 409, 'already_exists')
      assert.match(answer.body.message, new RegExp(`once@shop\\.example\\.com .*route ${first.id}\\.`))
      await assertNotAudited(answer)
    }
    const catchAll = { match: 'catch_all', address: null }
    const all = (await create(catchAll)).body
    const second = await create({ ...catchAll, forward_to: 'grace@example.net' })
    assertProblem(second, 409, 'already_exists')
    assert.match(second.body.message, new RegExp(`already has a catch-all: route ${all.id}\\.`))
    assert.equal(await countRoutes(), before + 1)
  })

  test('creates one route for concurrent requests with the same address', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => create({ address: 'race@shop.example.com' })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).sort(),
      [201, 409, 409, 409, 409, 409, 409, 409, 409, 409],
    )
  })

  test('is rejected if the endpoint is deleted or the domain renamed at the same time', async () => {
    const { resource: hook } = await makeEndpoint(projectId)
    const deleted = await holdingBack(database, `delete from control.endpoints where id = ${hook.id}`, () =>
      create({ action: 'endpoint', endpoint_id: hook.id, forward_to: null }),
    )
    assertProblem(deleted, 422, 'validation_failed')
    assert.match(deleted.body.message, /"endpoint_id"/)

    const moving = await makeDomain(projectId, { name: 'before.example.com' })
    const renamed = await holdingBack(
      database,
      `update control.domains set name = 'after.example.com' where id = ${moving.id}`,
      () => create({ domain_id: moving.id, address: 'a@before.example.com' }),
    )
    assertProblem(renamed, 422, 'validation_failed')
    assert.match(renamed.body.message, /must be under after\.example\.com/)
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.post('/projects/999999999/routing', configuration()), 404, 'not_found')
  })
})

describe('preview of routing.create', () => {
  const catchAll = { match: 'catch_all', address: null }

  test('describes how mail is handled', async () => {
    const { id: domain_id, name } = await makeDomain(projectId, { status: 'verified' })
    const address = `support@${name}`
    const cases: [change: object, effect: string][] = [
      [{ forward_to: 'ada@example.net' }, `Mail for ${address} is forwarded to ada@example.net.`],
      [
        { action: 'endpoint', endpoint_id: endpoint.id, forward_to: null },
        `Mail for ${address} is delivered to endpoint ${endpoint.id} (Events).`,
      ],
      [
        { action: 'reject', forward_to: null },
        `Mail for ${address} is rejected, and the sender gets a bounce.`,
      ],
      [{ is_active: false }, 'The route is inactive and receives no mail.'],
      [
        { ...catchAll, action: 'drop', forward_to: null },
        `Mail for every address of ${name} without an address route is accepted and discarded.`,
      ],
    ]
    for (const [change, effect] of cases) {
      assert.deepEqual((await preview({ domain_id, address, ...change })).effects, [effect])
    }
  })

  test('describes how the route and the catch-all share the mail', async () => {
    const { id: domain_id, name } = await makeDomain(projectId)
    await makeRoute(projectId, { domain_id, match: 'address', address: `a@${name}` })
    const all = await preview({ domain_id, ...catchAll })
    assert.equal(all.effects[1], 'Address routes take precedence: there is 1.')
    const made = await makeRoute(projectId, { domain_id })
    const one = await preview({ domain_id, address: `b@${name}` })
    assert.equal(one.effects[1], `The catch-all (route ${made.id}) does not receive mail for b@${name}.`)
  })

  test('warns if no mail can arrive: the domain is not verified, or has no MX', async () => {
    const pending = await makeDomain(projectId)
    const about = ({ id, name }: { id: number; name: string }) => ({ domain_id: id, address: `a@${name}` })
    const unconfirmed =
      'A confirmation link is sent to ada@example.net. Until the recipient confirms, nothing is forwarded, and senders get a temporary failure.'
    assert.deepEqual((await preview(about(pending))).warnings, [
      `Domain ${pending.name} is not verified: its mail is accepted only if no other project claims or has held the name, and nothing is forwarded.`,
      unconfirmed,
    ])
    const verified = await makeDomain(projectId, { status: 'verified' })
    assert.deepEqual((await preview(about(verified))).warnings, [
      `No MX record for ${verified.name} points here, so its mail is delivered elsewhere.`,
      unconfirmed,
    ])
    const record = (status: string) =>
      database.query(
        `insert into control.dns_records (project_id, domain_id, purpose, type, name, value, status)
         values ($1, $2, 'mx', 'MX', $3, $4, $4)`,
        [projectId, verified.id, verified.name, status],
      )
    await record('pending')
    assert.equal((await preview(about(verified))).warnings.length, 2)
    await record('verified')
    assert.deepEqual((await preview(about(verified))).warnings, [unconfirmed])
    assert.deepEqual((await preview({ ...about(pending), is_active: false })).warnings, [])
  })

  test('warns about an inactive endpoint, discarded mail, and forwarding loops', async () => {
    const { resource: asleep } = await makeEndpoint(projectId, { is_active: false })
    const toEndpoint = { action: 'endpoint', endpoint_id: asleep.id, forward_to: null }
    const has = async (change: object, warning: RegExp) => {
      const { warnings } = await preview(change)
      assert.ok(
        warnings.some((line) => warning.test(line)),
        warnings.join('\n'),
      )
    }
    await has(toEndpoint, new RegExp(`^Endpoint ${asleep.id} is inactive: it receives none`))
    await has({ action: 'drop', forward_to: null }, /discarded: senders are not notified/)

    const { id: domain_id, name } = await makeDomain(projectId)
    await has({ forward_to: `x@${name}` }, new RegExp(`No route of this project accepts mail for x@${name}`))
    const back = { action: 'forward', forward_to: 'y@shop.example.com' } as const
    const route = await makeRoute(projectId, { domain_id, ...back })
    await has(
      { forward_to: `X@${name}` },
      new RegExp(`^Route ${route.id} forwards mail for X@${name} on to `),
    )
  })
})
