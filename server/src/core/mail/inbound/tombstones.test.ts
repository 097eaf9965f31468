import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { customers } from '../../../testing/fixtures/customers.ts'
import { receivers } from '../../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { openInbound, rcptReplies } from '../../../testing/harness/inbound-harness.ts'
import { reconcileIdentity } from '../../control/domains/reconcile-identities.ts'

/**
 * Who receives mail for a name whose project was deleted while the MX record still points to this
 * installation (decision 0014).
 */
const database = await testDatabase()
const api = await startApi(database)
const { admin, as, keyOf } = await customers(api, database)
const { makeReceiver } = receivers(database, admin)
const { open } = await openInbound(api, database)
const { providers, log, db, cells } = api.context
const reason = 'Asked for by the customer'

const replyAt = async (name: string) => (await rcptReplies(await open(), [`support@${name}`]))[0]?.slice(0, 9)
const setStatus = (domainId: number, status: string) =>
  database.query('update control.domains set status = $2 where id = $1', [domainId, status])
const count = async (statement: string, name: string) =>
  (await database.query<{ count: number }>(`select count(*)::int as count from ${statement}`, [name]))[0]
    ?.count

type Receiver = Awaited<ReturnType<typeof makeReceiver>>

async function removeDomain(shop: Receiver): Promise<void> {
  for (const { id } of (await admin.get(`${shop.path}/routing`)).body.data) {
    assert.equal((await admin.delete(`${shop.path}/routing/${id}`, { reason })).status, 204)
  }
  assert.equal((await admin.delete(`${shop.path}/domains/${shop.domain.id}`, { reason })).status, 204)
}

/** Deletes the project as its owner. */
async function leave(shop: Receiver): Promise<void> {
  await removeDomain(shop)
  for (const { id } of (await admin.get(`${shop.path}/endpoints`)).body.data) {
    await admin.delete(`${shop.path}/endpoints/${id}`, { reason })
  }
  for (const { id } of await database.query<{ id: string }>(
    'select id from control.identities where project_id = $1',
    [shop.id],
  )) {
    await reconcileIdentity({ db: db.admin, mailOf: cells.mailOf, providers, log }, Number(id))
  }
  const { user_id } = (await admin.get(shop.path)).body
  const owner = await as({ id: user_id, email: '', name: '', role: 'user', is_active: true })
  const gone = await owner.delete(shop.path)
  assert.equal(gone.status, 204, gone.text)
}

async function claim(name: string): Promise<Receiver> {
  const squatter = await makeReceiver({ name, status: 'pending' })
  await squatter.route(null, squatter.toEndpoint)
  return squatter
}

describe('mail for a name that a deleted project held', () => {
  test('is routed to a project that adds the name only after that project has verified the name', async () => {
    const name = 'left.example.org'
    const shop = await makeReceiver({ name })
    await shop.route('support', shop.toEndpoint)
    assert.equal(await replyAt(name), '250 2.1.5')
    await leave(shop)
    assert.equal(await count('control.identities where name = $1', name), 0)
    assert.equal(await replyAt(name), '550 5.1.1')

    const squatter = await claim(name)
    assert.equal(await replyAt(name), '450 4.3.0')
    await setStatus(squatter.domain.id, 'verified')
    assert.equal(await replyAt(name), '250 2.1.5')
  })

  test('is also not routed if the name was only claimed', async () => {
    const name = 'claimed.example.org'
    const shop = await claim(name)
    assert.equal(await replyAt(name), '250 2.1.5', 'the only claim')
    await leave(shop)
    await claim(name)
    assert.equal(await replyAt(name), '450 4.3.0')
  })

  test('is also not routed for subdomains, unless the deleted project had only claimed the name', async () => {
    const held = await makeReceiver({ name: 'above.example.org' })
    await leave(held)
    await claim('shop.above.example.org')
    assert.equal(await replyAt('shop.above.example.org'), '450 4.3.0')

    await leave(await claim('only-claimed.example.org'))
    await claim('shop.only-claimed.example.org')
    assert.equal(await replyAt('shop.only-claimed.example.org'), '250 2.1.5')
  })

  test('is recorded as a digest, without a project', async () => {
    const name = 'digest.example.org'
    await leave(await makeReceiver({ name }))
    assert.equal(
      await count(
        'control.name_tombstones where digest = sha256(convert_to($1, $$UTF8$$)) and was_verified',
        name,
      ),
      1,
    )
    const columns = await database.query<{ name: string }>(
      `select column_name as name from information_schema.columns
        where table_schema = 'control' and table_name = 'name_tombstones' order by 1`,
    )
    assert.deepEqual(
      columns.map((column) => column.name),
      ['created_at', 'digest', 'was_verified'],
    )
  })
})

describe('a project that has verified a name', () => {
  test('keeps receiving mail for the name and its subdomains while a change is being verified', async () => {
    const shop = await makeReceiver({ name: 'again.example.org' })
    await shop.route(null, shop.toEndpoint)
    const edited = await admin.patch(`${shop.path}/domains/${shop.domain.id}`, {
      ...{ name: 'again.example.org', reason },
    })
    assert.deepEqual([edited.status, edited.body.status], [200, 'pending'], edited.text)
    assert.equal(await replyAt('again.example.org'), '250 2.1.5')
    const below = await admin.post(`${shop.path}/domains`, {
      ...{ name: 'deep.again.example.org', mta_provider: 'service', reason },
    })
    assert.equal(below.status, 201, below.text)
    const route = { match: 'catch_all', address: null, endpoint_id: null, forward_to: null, action: 'drop' }
    await admin.post(`${shop.path}/routing`, { ...route, domain_id: below.body.id })
    assert.equal(await replyAt('deep.again.example.org'), '250 2.1.5')
  })

  test('can verify it again after removing the domain', async () => {
    const shop = await makeReceiver({ name: 'removed.example.org' })
    await removeDomain(shop)
    const made = await admin.post(`${shop.path}/domains`, {
      ...{ name: 'removed.example.org', mta_provider: 'service' },
    })
    const route = { match: 'catch_all', address: null, endpoint_id: null, forward_to: null, action: 'drop' }
    await admin.post(`${shop.path}/routing`, { ...route, domain_id: made.body.id })
    assert.equal(await replyAt('removed.example.org'), '450 4.3.0')
    await setStatus(made.body.id, 'verified')
    assert.equal(await replyAt('removed.example.org'), '250 2.1.5')
  })
})

describe('a customer who adds a name', () => {
  test('gets the same responses whether the name was held, is held, is claimed, or is new', async () => {
    await leave(await makeReceiver({ name: 'once-held.example.org' }))
    await makeReceiver({ name: 'held-now.example.org' })
    await claim('claimed-now.example.org')
    const answers: string[] = []
    for (const name of [
      'once-held.example.org',
      'held-now.example.org',
      'claimed-now.example.org',
      'new.example.org',
    ]) {
      const squatter = await claim(name)
      const program = await keyOf(squatter.id, ['routing:read', 'domains:read'])
      const match = await program.get(`${squatter.path}/routing/match?address=support@${name}`)
      const domain = await program.get(`${squatter.path}/domains/${squatter.domain.id}`)
      assert.deepEqual([match.status, domain.status], [200, 200], match.text)
      const { outcome, explanation, route } = match.body
      const { status, last_check_error } = domain.body
      answers.push(
        JSON.stringify({ outcome, explanation, status, last_check_error })
          .replaceAll(name, 'NAME')
          .replace(`Route ${route.id} `, 'Route N '),
      )
    }
    assert.equal(new Set(answers).size, 1, answers.join('\n'))
    assert.match(answers[0] ?? '', /"domain_not_verified"/)
  })
})
