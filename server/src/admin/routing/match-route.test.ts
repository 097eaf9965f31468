import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeReceiver, makeApiKey, makeDomain, makeRoute } = receivers(database, admin)
const reason = 'Requested by the customer'

type Receiver = Awaited<ReturnType<typeof makeReceiver>>

const match = (shop: Receiver, address: string) =>
  admin.get(`${shop.path}/routing/match?address=${encodeURIComponent(address)}`)

const outcomeOf = async (shop: Receiver, address: string): Promise<string> => {
  const { status, body, text } = await match(shop, address)
  assert.equal(status, 200, text)
  return body.outcome
}

describe('routing.match', () => {
  test('returns the route, the domain and an explanation, the same as for the customer', async () => {
    const shop = await makeReceiver()
    const route = await shop.route('support', shop.toEndpoint)
    const { body } = await match(shop, `Support+x@${shop.domain.name.toUpperCase()}`)
    assert.deepEqual(body, {
      address: `Support+x@${shop.domain.name}`,
      outcome: 'endpoint',
      route,
      domain: { id: shop.domain.id, name: shop.domain.name, status: 'verified' },
      explanation: `Route ${route.id} delivers it to endpoint ${shop.endpoint.id}.`,
    })
    const { secret } = await makeApiKey(shop.id, { scopes: ['routing:read'], allowed_ips: [] })
    const program = new Client(api.url, secret, '/v1')
    const customerAnswer = await program.get(
      `${shop.path}/routing/match?address=${encodeURIComponent(`Support+x@${shop.domain.name}`)}`,
    )
    assert.deepEqual(customerAnswer.body, body)
  })

  test('returns every possible outcome', async () => {
    const shop = await makeReceiver()
    const forward = { action: 'forward', forward_to: 'helpdesk@example.net' }
    await shop.route('f', forward)
    await shop.route('u', { ...forward, forward_to: 'asked@example.net' }, { isConfirmed: false })
    await shop.route('r', { action: 'reject' })
    await shop.route('d', { action: 'drop' })
    await shop.route('off', { action: 'drop', is_active: false })
    await shop.route('e', shop.toEndpoint)
    const outcomes = async () =>
      Promise.all(['f', 'u', 'r', 'd', 'off', 'e'].map((local) => outcomeOf(shop, shop.at(local))))
    assert.deepEqual(await outcomes(), [
      ...['forward', 'forward_not_confirmed', 'reject', 'drop', 'no_route', 'endpoint'],
    ])
    assert.equal(await outcomeOf(shop, 'x@nobody.example'), 'no_domain')

    const ses = await makeDomain(shop.id, { status: 'verified' })
    await makeRoute(shop.id, { domain_id: ses.id, match: 'catch_all', address: null, ...forward } as object)
    assert.equal(await outcomeOf(shop, `x@${ses.name}`), 'provider_forwards_nothing')

    const { name, url, events } = shop.endpoint
    await admin.patch(`${shop.path}/endpoints/${shop.endpoint.id}`, { name, url, events, is_active: false })
    assert.equal(await outcomeOf(shop, shop.at('e')), 'endpoint_inactive')
    await database.query(`update control.domains set status = 'pending' where id = $1`, [shop.domain.id])
    assert.equal(await outcomeOf(shop, shop.at('f')), 'domain_not_verified')
    await admin.patch(shop.path, { is_locked: true, reason })
    assert.equal(await outcomeOf(shop, shop.at('d')), 'project_locked')
  })

  test("uses only the project's domains, and reports a name held by another project", async () => {
    const shop = await makeReceiver()
    await shop.route(null, { action: 'drop' })
    const other = await makeReceiver({ name: shop.domain.name, status: 'pending' })
    await other.route(null, { action: 'reject' })
    assert.equal(await outcomeOf(shop, shop.at('x')), 'drop')
    const { body } = await match(other, shop.at('x'))
    assert.deepEqual([body.outcome, body.domain.id], ['held_elsewhere', other.domain.id])
    await database.query(`update control.domains set status = 'pending' where id = $1`, [shop.domain.id])
    assert.deepEqual(
      [await outcomeOf(shop, shop.at('x')), await outcomeOf(other, shop.at('x'))],
      ['contested', 'contested'],
    )
    const third = await makeReceiver()
    assert.equal(await outcomeOf(third, shop.at('x')), 'no_domain', 'whatever others claim')
  })

  test('requires one address and an existing project', async () => {
    const shop = await makeReceiver()
    assertProblem(await match(shop, 'support'), 400, 'invalid_parameter')
    assertProblem(await match(shop, 'a b@example.com'), 400, 'invalid_parameter')
    assertProblem(await admin.get(`${shop.path}/routing/match`), 400, 'invalid_parameter')
    assertProblem(
      await admin.get('/projects/987654321/routing/match?address=a@example.com'),
      404,
      'not_found',
    )
  })
})
