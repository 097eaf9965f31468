import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { type ApiKeyScope, apiKeyScopes } from '../../core/control/api-keys/scopes.ts'
import { listMessages } from '../../core/mail/messages/messages.ts'
import { bindToDomain } from '../../platform/db/db.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { planner } from '../../testing/expectations/query-plans.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { endpointConfiguration } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { inDays } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import type { Answer } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { domainBindings } from '../domain-bindings.ts'
import type { OperationId } from '../roles.ts'
import { customerOperations } from '../routes.ts'
import { neededScopes } from '../scopes.ts'

/** An API key that is bound to a domain cannot access its project's resources under other domains. */
const database = await testDatabase()
const api = await startApi(database)
const { make, ownProject, keyOf, admin } = await customers(api, database)
const { makeEvent, makeAttempt } = mailRows(database)
const plan = await make.makePlan({ max_domains: 50 })
const { owner, project } = await ownProject({ plan_id: plan.id })
const at = `/projects/${project.id}`
const own = await make.makeDomain(project.id, { mta_provider: 'service', status: 'verified' })
const other = await make.makeDomain(project.id, { mta_provider: 'service', status: 'verified' })
const scopes = [...apiKeyScopes] as ApiKeyScope[]
const bound = await keyOf(project.id, scopes, { domain_id: own.id })
const free = await keyOf(project.id, scopes)

let made = 0
const mailFrom = (domain: { name: string }) => ({
  ...{ from: `shop@${domain.name}`, to: ['someone@example.net'], subject: 's', text: 't' },
  send_at: inDays(1),
})
async function send(domain: { name: string }): Promise<string> {
  const answer = await free.post('/messages', mailFrom(domain))
  assert.equal(answer.status, 202, answer.text)
  return answer.body.id
}
const routeOn = (domain: { id: number; name: string }) => ({
  ...{ domain_id: domain.id, match: 'address', address: `a${++made}@${domain.name}` },
  ...{ action: 'drop', endpoint_id: null, forward_to: null, is_active: true },
})
async function makeRoute(domain: { id: number; name: string }): Promise<number> {
  const answer = await owner.post(`${at}/routing`, routeOn(domain))
  assert.equal(answer.status, 201, answer.text)
  return answer.body.id
}
const { resource: endpoint } = await make.makeEndpoint(project.id)
const theirs = { message: await send(other), route: await makeRoute(other) }
const ours = { message: await send(own), route: await makeRoute(own) }
await free.post('/suppressions', { address: 'gone@example.net' })

const idsOf = (answer: Answer) => {
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.map(({ id }: { id: unknown }) => id)
}
const gone = (answer: Answer) => assertProblem(answer, 404, 'not_found')

/** Every operation on a domain's resources that API keys can call, with another domain and with the key's own. */
const ofDomain: Partial<Record<OperationId, () => Promise<void>>> = {
  async 'domains.list'() {
    assert.deepEqual(idsOf(await bound.get(`${at}/domains`)), [own.id])
  },
  async 'domains.show'() {
    gone(await bound.get(`${at}/domains/${other.id}`))
    assert.equal((await bound.get(`${at}/domains/${own.id}`)).body.name, own.name)
  },
  async 'domains.edit'() {
    gone(await bound.patch(`${at}/domains/${other.id}`, { mta_provider: 'service' }))
    const spare = await make.makeDomain(project.id, { mta_provider: 'service' })
    const key = await keyOf(project.id, scopes, { domain_id: spare.id })
    const renamed = await key.patch(`${at}/domains/${spare.id}`, { name: other.name })
    assertProblem(renamed, 403, 'insufficient_scope')
    const edited = await key.patch(`${at}/domains/${spare.id}`, { name: spare.name })
    assert.deepEqual([edited.status, edited.body.status], [200, 'pending'], edited.text)
  },
  async 'domains.verify'() {
    gone(await bound.post(`${at}/domains/${other.id}/verify`))
    assert.equal((await bound.post(`${at}/domains/${own.id}/verify`)).status, 200)
  },
  async 'domains.rotate'() {
    gone(await bound.post(`${at}/domains/${other.id}/rotate`, {}))
    assert.equal((await bound.post(`${at}/domains/${own.id}/rotate`, {})).status, 200)
  },
  async 'domains.delete'() {
    gone(await bound.delete(`${at}/domains/${other.id}`))
    // The API key itself refers to this domain.
    assertProblem(await bound.delete(`${at}/domains/${own.id}`), 409, 'in_use')
  },
  async 'routing.list'() {
    const ids = idsOf(await bound.get(`${at}/routing`))
    assert.ok(ids.includes(ours.route) && !ids.includes(theirs.route))
  },
  async 'routing.show'() {
    gone(await bound.get(`${at}/routing/${theirs.route}`))
    assert.equal((await bound.get(`${at}/routing/${ours.route}`)).status, 200)
  },
  async 'routing.match'() {
    const match = async (domain: { name: string }) =>
      (await bound.get(`${at}/routing/match?address=x@${domain.name}`)).body.outcome
    assert.deepEqual([await match(other), await match(own)], ['no_domain', 'no_route'])
  },
  async 'routing.create'() {
    const refused = await bound.post(`${at}/routing`, routeOn(other))
    assertProblem(refused, 422, 'validation_failed')
    assert.match(refused.body.message, /"domain_id" is not a domain of project/)
    assert.equal((await bound.post(`${at}/routing`, routeOn(own))).status, 201)
  },
  async 'routing.edit'() {
    gone(await bound.patch(`${at}/routing/${theirs.route}`, routeOn(own)))
    assertProblem(await bound.patch(`${at}/routing/${ours.route}`, routeOn(other)), 422, 'validation_failed')
    assert.equal((await bound.patch(`${at}/routing/${ours.route}`, routeOn(own))).status, 200)
  },
  async 'routing.request-confirmation'() {
    gone(await bound.post(`${at}/routing/${theirs.route}/request-confirmation`, {}))
    const answer = await bound.post(`${at}/routing/${ours.route}/request-confirmation`, {})
    assert.equal(answer.status, 200, answer.text)
  },
  async 'routing.delete'() {
    gone(await bound.delete(`${at}/routing/${theirs.route}`))
    const route = await makeRoute(own)
    assert.equal((await bound.delete(`${at}/routing/${route}`)).status, 204)
  },
  async 'messages.send'() {
    const refused = await bound.post('/messages', mailFrom(other))
    assertProblem(refused, 403, 'domain_not_verified')
    const never = await bound.post('/messages', mailFrom({ name: 'never.example.org' }))
    assert.equal(
      never.body.message.replace('never.example.org', '#'),
      refused.body.message.replace(other.name, '#'),
    )
    assert.equal((await bound.post('/messages', mailFrom(own))).status, 202)
  },
  async 'messages.send-batch'() {
    const { body } = await bound.post('/messages/batch', { messages: [mailFrom(other), mailFrom(own)] })
    assert.deepEqual(
      body.data.map(({ error }: { error?: string }) => error),
      ['domain_not_verified', undefined],
    )
  },
  async 'messages.list'() {
    for (const filter of ['', '&recipient=someone@example.net', '&status=scheduled']) {
      const ids = idsOf(await bound.get(`/messages?limit=200${filter}`))
      assert.ok(ids.includes(ours.message) && !ids.includes(theirs.message), filter)
      assert.deepEqual(idsOf(await bound.get(`${at}/messages?limit=200${filter}`)), ids)
    }
  },
  async 'messages.show'() {
    gone(await bound.get(`/messages/${theirs.message}`))
    gone(await bound.get(`${at}/messages/${theirs.message}`))
    assert.equal((await bound.get(`/messages/${ours.message}`)).status, 200)
  },
  async 'messages.events'() {
    gone(await bound.get(`/messages/${theirs.message}/events`))
    assert.equal((await bound.get(`/messages/${ours.message}/events`)).status, 200)
  },
  async 'messages.cancel'() {
    gone(await bound.post(`/messages/${theirs.message}/cancel`))
    assert.equal((await free.get(`/messages/${theirs.message}`)).body.status, 'scheduled')
    const id = await send(own)
    assert.equal((await bound.post(`/messages/${id}/cancel`)).body.status, 'canceled')
  },
}

/** Every other operation that API keys can call. A key that is not bound to a domain is allowed to call it. */
const ofProject: Partial<Record<OperationId, (key: typeof free) => Promise<Answer>>> = {
  'domains.create': (key) =>
    key.post(`${at}/domains`, { name: `bound${++made}.example.org`, mta_provider: 'service' }),
  'endpoints.list': (key) => key.get(`${at}/endpoints`),
  'endpoints.show': (key) => key.get(`${at}/endpoints/${endpoint.id}`),
  'endpoints.create': (key) => key.post(`${at}/endpoints`, endpointConfiguration),
  'endpoints.edit': (key) => key.patch(`${at}/endpoints/${endpoint.id}`, endpointConfiguration),
  'endpoints.rotate': (key) => key.post(`${at}/endpoints/${endpoint.id}/rotate`, {}),
  'endpoints.test': (key) => key.post(`${at}/endpoints/${endpoint.id}/test`),
  'endpoints.attempts': (key) => key.get(`${at}/endpoints/${endpoint.id}/attempts`),
  'delivery-attempts.show': async (key) =>
    key.get(
      `${at}/delivery-attempts/${await makeAttempt(project.id, endpoint.id, await makeEvent(project.id))}`,
    ),
  'endpoints.replay': async (key) =>
    key.post(`${at}/endpoints/${endpoint.id}/replay`, { event_id: await makeEvent(project.id) }),
  'endpoints.delete': (key) => key.delete(`${at}/endpoints/${endpoint.id}`),
  'suppressions.list': (key) => key.get('/suppressions'),
  'suppressions.show': (key) => key.get('/suppressions/gone@example.net'),
  'suppressions.create': (key) => key.post('/suppressions', { address: `gone${++made}@example.net` }),
  'suppressions.import': (key) => key.post('/suppressions/import', { csv: `gone${++made}@example.net` }),
  'suppressions.export': (key) => key.get('/suppressions/export'),
  'suppressions.delete': (key) => key.delete('/suppressions/gone@example.net'),
  'messages.explain': (key) => key.get(`/messages/${ours.message}/explain`),
  'usage.show': (key) => key.get('/usage'),
  'mailbox-providers.show': (key) => key.get('/mailbox-providers'),
  'sending.explain': (key) => key.get('/explain?from=a@example.com&to=b@example.net'),
}

describe('the table of bindings', () => {
  test('lists exactly the existing operations', () => {
    const ids = customerOperations.map(({ id }) => id)
    assert.deepEqual(Object.keys(domainBindings).toSorted(), ids.toSorted())
  })

  test('is tested for each operation that API keys can call', () => {
    const callable = Object.entries(neededScopes).flatMap(([id, scope]) =>
      scope === null ? [] : [[id, domainBindings[id as OperationId]].join()],
    )
    const tried = [
      ...Object.keys(ofDomain).map((id) => `${id},domain`),
      ...Object.keys(ofProject).map((id) => `${id},refused`),
    ]
    assert.deepEqual(tried.toSorted(), callable.toSorted())
  })
})

describe('an API key that is bound to a domain', () => {
  for (const [id, tryOut] of Object.entries(ofDomain)) {
    test(`${id}: is limited to the key's domain`, tryOut)
  }

  for (const [id, call] of Object.entries(ofProject)) {
    test(`${id}: is rejected, because it concerns the whole project`, async () => {
      const refused = await call(bound)
      assertProblem(refused, 403, 'insufficient_scope')
      assert.match(refused.body.message, /bound to one domain/)
      const answer = await call(free)
      assert.ok(answer.status < 300, answer.text)
    })
  }

  test('is limited to its current domain', async () => {
    const key = await keyOf(project.id, scopes)
    assert.equal((await key.get(`/messages/${theirs.message}`)).status, 200)
    const route = routeOn(other)
    const create = () => key.post(`${at}/routing`, route, { 'idempotency-key': 'before-it-was-bound' })
    for (const _ of [1, 2]) assert.equal((await create()).status, 201)
    const { body } = await admin.get(`${at}/api-keys/${key.id}`)
    const { name, scopes: all, allowed_ips, expires_at, is_active } = body
    const config = { ...{ name, scopes: all, allowed_ips, expires_at, is_active }, domain_id: own.id }
    assert.equal((await admin.patch(`${at}/api-keys/${key.id}`, config)).status, 200)
    gone(await key.get(`/messages/${theirs.message}`))
    assertProblem(await create(), 422, 'validation_failed')
  })

  test('lists messages with a bounded index scan', async () => {
    const plans = await planner(database)((tx) => listMessages(tx, project.id, { limit: 50 }, own.id))
    const scanned = plans.flatMap((plan) => plan.scanned)
    assert.deepEqual(
      scanned.filter((table) => /^(?:messages|recipients)/.test(table)),
      [],
    )
  })
})

test('a transaction that is bound to a domain reads no rows of other domains', async () => {
  const tables = ['domains', 'identities', 'dns_records', 'routes', 'dkim_keys']
  const counts = (boundTo: number | null) =>
    api.context.db.customer.forProject(project.id).read(async (tx) => {
      if (boundTo !== null) await bindToDomain(tx, boundTo)
      const found: Record<string, number> = {}
      for (const table of tables) {
        const { rows } = await sql<{ count: number }>`
          select count(*)::int as count from ${sql.table(`control.${table}`)}`.execute(tx)
        found[table] = rows[0]?.count ?? 0
      }
      return found
    })
  const [all, one] = [await counts(null), await counts(other.id)]
  const [expected] = await database.query(
    `select (select count(*)::int from control.domains where id = $1) as domains,
            (select count(*)::int from control.identities where domain_id = $1) as identities,
            (select count(*)::int from control.dns_records where domain_id = $1) as dns_records,
            (select count(*)::int from control.routes where domain_id = $1) as routes,
            (select count(*)::int from control.dkim_keys join control.identities on identities.id = identity_id
              where domain_id = $1) as dkim_keys`,
    [other.id],
  )
  assert.deepEqual(one, expected)
  for (const table of tables) assert.ok((all[table] ?? 0) > (one[table] ?? 0), table)
})
