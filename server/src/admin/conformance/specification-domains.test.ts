import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../context/context.ts'
import { reconcileDue } from '../../core/control/domains/reconcile-identities.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { startSesPeer } from '../../testing/peers/ses-peer.ts'

/** Domain edits register replacement identities and reset verification; address routes never change implicitly. */
const database = await testDatabase()
const peer = await startSesPeer()
const api = await startApi(database, peer.settings)
const admin = await signedIn(api)
const { makePlan, makeProject, makeDomain, makeEndpoint, allowServiceMta } = fixtures(database, admin)
const project = await makeProject()
await allowServiceMta(project.id)

let numbered = 0
const newName = () => `d${++numbered}.example.net`

const pathOf = ({ project_id, id }: { project_id: number; id: number }) =>
  `/projects/${project_id}/domains/${id}`

/** The state after a DNS check. */
const verify = ({ id }: { id: number }) =>
  database.query(
    `update control.domains set status = 'verified', verified_at = now(), last_checked_at = now(), failing_since = null
      where id = $1`,
    [id],
  )

async function makeRoute(domain: { project_id: number; id: number }, address: string | null) {
  const answer = await admin.post(`/projects/${domain.project_id}/routing`, {
    domain_id: domain.id,
    match: address === null ? 'catch_all' : 'address',
    address,
    action: 'drop',
    endpoint_id: null,
    forward_to: null,
    is_active: true,
  })
  assert.equal(answer.status, 201, answer.text)
  return answer.body as { id: number; address: string | null }
}

const routesOf = async (domainId: number): Promise<Record<number, string | null>> => {
  const { body } = await admin.get(`/projects/${project.id}/routing?limit=200`)
  const routes = body.data as { id: number; domain_id: number; address: string | null }[]
  return Object.fromEntries(
    routes.filter(({ domain_id }) => domain_id === domainId).map(({ id, address }) => [id, address]),
  )
}

describe('domains.create', () => {
  test('accepts a name and an mta_provider and returns the domain, which is pending', async () => {
    const name = newName()
    const answer = await admin.post(`/projects/${project.id}/domains`, { name, mta_provider: 'ses' })
    assert.equal(answer.status, 201, answer.text)
    const { body } = answer
    assert.deepEqual(
      [body.name, body.mta_provider, body.status, body.verified_at],
      [name, 'ses', 'pending', null],
    )
    assert.equal(answer.headers.get('location'), `/v1/admin${pathOf(body)}`)
    assert.deepEqual((await admin.get(pathOf(body))).body, body)
  })

  test('requires "name"', async () => {
    assertProblem(
      await admin.post(`/projects/${project.id}/domains`, { mta_provider: 'ses' }),
      422,
      'validation_failed',
    )
  })

  test('without "mta_provider" uses service if the project is allowed to, otherwise ses', async () => {
    for (const allow_service_mta of [true, false]) {
      const { id } = await makeProject()
      if (allow_service_mta) await allowServiceMta(id)
      const { body } = await admin.post(`/projects/${id}/domains`, { name: newName() })
      assert.equal(body.mta_provider, allow_service_mta ? 'service' : 'ses')
    }
  })

  test('can exceed max_domains only with a reason', async () => {
    const { id } = await makeProject({ plan_id: (await makePlan({ max_domains: 1 })).id })
    const add = (extra: object = {}) =>
      admin.post(`/projects/${id}/domains`, { name: newName(), mta_provider: 'ses', ...extra })
    assert.equal((await add()).status, 201)
    const refused = await add()
    assertProblem(refused, 422, 'limit_exceeded')
    assert.match(refused.body.message, /max_domains.*"reason"/)
    assert.equal(await auditRowOf(database, refused), undefined)
    const done = await add({ reason })
    assert.equal(done.status, 201, done.text)
    const row = await auditRowOf(database, done)
    assert.deepEqual(
      [row?.operation, row?.reason, row?.limit_exception],
      ['domains.create', reason, { limit: 'max_domains', value: 1, count: 2 }],
    )
  })
})

describe('domains.edit', () => {
  for (const [what, change] of Object.entries({
    'a new name': { name: 'renamed.example.net' },
    'another provider': { mta_provider: 'service' },
    'both of them': { name: 'both.example.net', mta_provider: 'service' },
  })) {
    test(`accepts ${what} and returns the domain`, async () => {
      const domain = await makeDomain(project.id)
      const answer = await admin.patch(pathOf(domain), change)
      assert.equal(answer.status, 200, answer.text)
      const { name, mta_provider } = answer.body
      assert.deepEqual(
        { name, mta_provider },
        { name: domain.name, mta_provider: domain.mta_provider, ...change },
      )
      assert.deepEqual((await admin.get(pathOf(domain))).body, answer.body)
    })
  }

  test('rejects a body with neither', async () => {
    const domain = await makeDomain(project.id)
    for (const body of [{}, { reason }, { preserve_local_parts: true }]) {
      assertProblem(await admin.patch(pathOf(domain), body), 422, 'validation_failed')
    }
  })

  for (const change of [
    { name: 'again.example.net' },
    { mta_provider: 'service' },
    { mta_provider: 'ses' },
  ] as const) {
    test(`registers a replacement identity and resets verification: ${JSON.stringify(change)}`, async () => {
      const domain = await makeDomain(project.id)
      await verify(domain)
      const { body: before } = await admin.get(pathOf(domain))
      assert.equal(before.status, 'verified')

      const { body: after } = await admin.patch(pathOf(domain), change)

      assert.deepEqual([after.status, after.verified_at], ['pending', null])
      assert.notEqual(after.identity.id, before.identity.id)
      assert.equal(after.identity.state, 'registering')
      const values = (records: { value: string }[]) => records.map(({ value }) => value)
      const ownership = values(after.dns_records)[0] ?? assert.fail()
      assert.ok(!values(before.dns_records).includes(ownership), 'the ownership record is new')
    })
  }

  test('does the same with unchanged values, and a preview warns about it', async () => {
    const domain = await makeDomain(project.id)
    const same = { name: domain.name, mta_provider: domain.mta_provider }
    const preview = await admin.patch(`${pathOf(domain)}?dry_run=true`, same)
    assert.match(preview.body.warnings.join(' '), /do not change/)
    const { body } = await admin.patch(pathOf(domain), same)
    assert.notEqual(body.identity.id, domain.identity.id)
  })

  test('registers the new identity with the provider and deregisters the old one', async () => {
    const domain = await makeDomain(project.id)
    await reconcileDue(workerDeps(api.context), 100)
    const name = newName()
    await admin.patch(pathOf(domain), { name })
    await reconcileDue(workerDeps(api.context), 100)
    const { body } = await admin.get(pathOf(domain))
    assert.equal(body.identity.state, 'registered')
    const known = peer.deeds
      .filter((deed) => [name, domain.name].includes(deed.domain))
      .map((deed) => `${deed.kind} ${deed.domain}`)
    assert.deepEqual(
      known.sort(),
      [`create ${domain.name}`, `create ${name}`, `delete ${domain.name}`].sort(),
    )
  })
})

describe('address routes of a renamed domain', () => {
  test('require an explicit choice: a body without one is rejected, and the error names the routes', async () => {
    const domain = await makeDomain(project.id)
    const route = await makeRoute(domain, `info@${domain.name}`)
    const answer = await admin.patch(pathOf(domain), { name: newName(), reason })
    assertProblem(answer, 422, 'address_routes_unresolved')
    assert.match(answer.body.message, new RegExp(`\\b${route.id} \\(info@${domain.name}\\)`))
    assert.deepEqual((await admin.get(pathOf(domain))).body, domain)
    assert.deepEqual(await routesOf(domain.id), { [route.id]: route.address })
  })

  test('keep their local parts if requested', async () => {
    const domain = await makeDomain(project.id)
    const info = await makeRoute(domain, `info@${domain.name}`)
    const sales = await makeRoute(domain, `sales+de@${domain.name}`)
    const name = newName()
    const answer = await admin.patch(pathOf(domain), { name, preserve_local_parts: true })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await routesOf(domain.id), {
      [info.id]: `info@${name}`,
      [sales.id]: `sales+de@${name}`,
    })
    const row = await auditRowOf(database, answer)
    assert.equal(row?.related?.length, 2)
  })

  test('get the specified replacement addresses, one for each route', async () => {
    const domain = await makeDomain(project.id)
    const info = await makeRoute(domain, `info@${domain.name}`)
    const sales = await makeRoute(domain, `sales@${domain.name}`)
    const name = newName()
    const answer = await admin.patch(pathOf(domain), {
      name,
      route_replacements: [
        { route_id: info.id, address: `hello@${name}` },
        { route_id: sales.id, address: `Shop@${name.toUpperCase()}` },
      ],
    })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await routesOf(domain.id), { [info.id]: `hello@${name}`, [sales.id]: `shop@${name}` })
  })

  test('reject replacements other than one address under the new name for each route', async () => {
    const domain = await makeDomain(project.id)
    const info = await makeRoute(domain, `info@${domain.name}`)
    const sales = await makeRoute(domain, `sales@${domain.name}`)
    const catchAll = await makeRoute(domain, null)
    const other = await makeRoute(
      await makeDomain(project.id, { name: 'other.example.net' }),
      'a@other.example.net',
    )
    const name = newName()
    const good = [
      { route_id: info.id, address: `info@${name}` },
      { route_id: sales.id, address: `sales@${name}` },
    ]
    const [first, second] = good
    const wrong: Record<string, object> = {
      both: { preserve_local_parts: true, route_replacements: good },
      'none at all': { route_replacements: [] },
      'one missing': { route_replacements: [first] },
      'a foreign one': { route_replacements: [...good, { route_id: other.id, address: `a@${name}` }] },
      'the catch-all': { route_replacements: [...good, { route_id: catchAll.id, address: `b@${name}` }] },
      'one that is not there': { route_replacements: [...good, { route_id: 999_999, address: `b@${name}` }] },
      'one twice': { route_replacements: [...good, first] },
      'under the old name': { route_replacements: [first, { ...second, address: `sales@${domain.name}` }] },
      'under a subdomain': { route_replacements: [first, { ...second, address: `sales@x.${name}` }] },
      'no address': { route_replacements: [first, { ...second, address: 'sales' }] },
      'the same address': { route_replacements: [first, { ...second, address: `info@${name}` }] },
    }
    const before = await routesOf(domain.id)
    for (const [what, choice] of Object.entries(wrong)) {
      const answer = await admin.patch(pathOf(domain), { name, ...choice, reason })
      assert.deepEqual([what, answer.status, answer.body.error], [what, 422, 'address_routes_unresolved'])
    }
    assert.deepEqual(await routesOf(domain.id), before)
    assert.deepEqual((await admin.get(pathOf(domain))).body, domain)
  })

  test('require no choice if there are none, or if the name does not change', async () => {
    const plain = await makeDomain(project.id)
    await makeRoute(plain, null)
    assert.equal((await admin.patch(pathOf(plain), { name: newName() })).status, 200)

    const domain = await makeDomain(project.id)
    const info = await makeRoute(domain, `info@${domain.name}`)
    for (const choice of [{}, { preserve_local_parts: true }]) {
      const answer = await admin.patch(pathOf(domain), { mta_provider: 'service', ...choice })
      assert.equal(answer.status, 200, answer.text)
    }
    assert.deepEqual(await routesOf(domain.id), { [info.id]: info.address })
  })

  test('follow automatically as a catch-all', async () => {
    const domain = await makeDomain(project.id)
    const catchAll = await makeRoute(domain, null)
    assert.equal((await admin.patch(pathOf(domain), { name: newName() })).status, 200)
    assert.deepEqual(await routesOf(domain.id), { [catchAll.id]: null })
  })
})

describe('domains.delete', () => {
  test('requires a reason, returns no body, and deletes the domain', async () => {
    const domain = await makeDomain(project.id)
    assertProblem(await admin.delete(pathOf(domain), {}), 422, 'reason_required')
    const answer = await admin.delete(pathOf(domain), { reason })
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await admin.get(pathOf(domain)), 404, 'not_found')
  })

  test('is rejected while a route or an API key refers to the domain', async () => {
    const domain = await makeDomain(project.id)
    const route = await makeRoute(domain, `info@${domain.name}`)
    const refused = await admin.delete(pathOf(domain), { reason })
    assertProblem(refused, 409, 'in_use')
    assert.match(refused.body.message, new RegExp(`routes ${route.id}\\b`))
    await admin.delete(`/projects/${project.id}/routing/${route.id}`, { reason })

    const { body: key } = await admin.post(`/projects/${project.id}/api-keys`, {
      mode: 'live',
      name: 'Bound',
      scopes: ['messages:send'],
      domain_id: domain.id,
      allowed_ips: [],
      expires_at: null,
      is_active: true,
    })
    assertProblem(await admin.delete(pathOf(domain), { reason }), 409, 'in_use')
    await admin.delete(`/projects/${project.id}/api-keys/${key.resource.id}`, { reason })
    assert.equal((await admin.delete(pathOf(domain), { reason })).status, 204)
  })
})

describe('domains.rotate', () => {
  test('requires a reason and adds a new DKIM key next to the current one', async () => {
    const domain = await makeDomain(project.id, { mta_provider: 'service' })
    await database.query(`update control.dkim_keys set state = 'active' where identity_id = $1`, [
      domain.identity.id,
    ])
    assertProblem(await admin.post(`${pathOf(domain)}/rotate`, {}), 422, 'reason_required')
    const { status, body } = await admin.post(`${pathOf(domain)}/rotate`, { reason })
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['resource'])
    const dkim = (records: { purpose: string; value: string }[]) =>
      records.filter(({ purpose }) => purpose === 'dkim').map(({ value }) => value)
    const [present] = dkim(domain.dns_records)
    assert.equal(dkim(body.resource.dns_records).length, 2)
    assert.ok(dkim(body.resource.dns_records).includes(present ?? ''))
    assert.equal(body.resource.identity.selector, domain.identity.selector)
  })
})

test('an endpoint that a route uses cannot be deleted', async () => {
  const { resource } = await makeEndpoint(project.id)
  const domain = await makeDomain(project.id)
  const answer = await admin.post(`/projects/${project.id}/routing`, {
    domain_id: domain.id,
    match: 'catch_all',
    address: null,
    action: 'endpoint',
    endpoint_id: resource.id,
    forward_to: null,
    is_active: true,
  })
  assert.equal(answer.status, 201, answer.text)
  assertProblem(
    await admin.delete(`/projects/${project.id}/endpoints/${resource.id}`, { reason }),
    409,
    'in_use',
  )
})
