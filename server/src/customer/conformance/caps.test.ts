import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { type CapName, capTable } from '../../core/control/caps/caps.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { boundedOtherwise, capsOfPosts } from '../caps.ts'
import { customerOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/** Everything that a customer can create has a limit (docs/operations/limits.md). */
const database = await testDatabase()
const first = await startApi(database)
const plan = await fixtures(database, await signedIn(first)).makePlan({ max_domains: 100, max_users: 100 })
const most = 2
const api = await startApi(database, {
  ...Object.fromEntries(Object.values(capTable).map(({ setting }) => [setting, String(most)])),
  POSTERN_CUSTOMER_PLAN_ID: String(plan.id),
})
const { admin, make, stranger, ownProject } = await customers(api, database)
const { assertNotAudited } = auditOf(database, admin)
const { makeMail, makeEvent } = mailRows(database)
const reason = 'Agreed with sales'

let made = 0
const routeOn = (domain: { id: number; name: string }) => ({
  ...{ domain_id: domain.id, match: 'address', address: `a${++made}@${domain.name}` },
  ...{ action: 'drop', endpoint_id: null, forward_to: null, is_active: true },
})
const keyConfiguration = () => ({
  ...{ mode: 'live', name: `Key ${++made}`, scopes: ['messages:send'], domain_id: null },
  ...{ allowed_ips: [], expires_at: null, is_active: true },
})

/** The number of rows in every table. Partitions are added up. */
async function rowCounts(): Promise<Map<string, number>> {
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', schemas.nspname, tables.relname) as name
       from pg_class as tables join pg_namespace as schemas on schemas.oid = tables.relnamespace
      where tables.relkind = 'r' and (schemas.nspname in ('control', 'mail')
            or (schemas.nspname = 'jobs' and tables.relname = 'job_common'))`,
  )
  const counts = new Map<string, number>()
  const rows = await database.query<{ name: string; count: number }>(
    tables
      .map(({ name }) => `select '${name}' as name, count(*)::int as count from ${name}`)
      .join(' union all '),
  )
  for (const { name, count } of rows) {
    const table = name.replace(/_\d{8}$/, '')
    counts.set(table, (counts.get(table) ?? 0) + count)
  }
  return counts
}

describe('the table of caps', () => {
  const posts = customerOperations.filter((operation) => methodOf(operation) === 'POST').map(({ id }) => id)

  test('lists exactly the POST operations of the customer plane', () => {
    assert.deepEqual(Object.keys(capsOfPosts).toSorted(), posts.toSorted())
  })

  test('is documented on the page about limits, including every cap and every table that is limited in another way', async () => {
    const page = await readFile(new URL('../../../../docs/operations/limits.md', import.meta.url), 'utf8')
    for (const [name, { setting, default: value }] of Object.entries(capTable)) {
      assert.match(
        page,
        new RegExp(`\\| \`${name}\` \\|[^\\n]*\\| ${value.toLocaleString('en')} \\|[^\\n]*\`${setting}\``),
      )
    }
    for (const post of posts) assert.ok(page.includes(`| \`${post}\` |`), post)
    for (const table of Object.keys(boundedOtherwise)) assert.ok(page.includes(`\`${table}\``), table)
  })
})

/** Created before the counted requests, one for each attempt. */
const threeProjects = async () => [
  await ownProject({ plan_id: plan.id }),
  await ownProject({ plan_id: plan.id }),
  await ownProject({ plan_id: plan.id }),
]

/** A member of the project who can invite others. */
async function manager(projectId: number) {
  const person = await stranger()
  await make.makeMember(projectId, { email: person.user.email, role: 'admin' })
  return person
}

/** Withdraws the invitation after the response. The invitation still counts as sent. */
async function withdrawn(path: string, answer: Answer | undefined): Promise<Answer> {
  assert.ok(answer)
  if (answer.status === 201) await admin.delete(`${path}/${answer.body.id}`, { reason })
  return answer
}

interface Capped {
  /** Creates another resource. */
  create(): Promise<Answer>
  /** The same request by an administrator. */
  byAdmin?(body: object): Promise<Answer>
  operation: string
}

const cases: Partial<Record<CapName, () => Promise<Capped>>> = {
  async max_endpoints() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}/endpoints`
    return {
      operation: 'endpoints.create',
      create: () => owner.post(path, endpointConfiguration),
      byAdmin: (body) => admin.post(path, { ...endpointConfiguration, ...body }),
    }
  },
  async max_routes() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const domain = await make.makeDomain(project.id)
    const path = `/projects/${project.id}/routing`
    return {
      operation: 'routing.create',
      create: () => owner.post(path, routeOn(domain)),
      byAdmin: (body) => admin.post(path, { ...routeOn(domain), ...body }),
    }
  },
  async max_api_keys() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}/api-keys`
    return {
      operation: 'api-keys.create',
      create: () => owner.post(path, keyConfiguration()),
      byAdmin: (body) => admin.post(path, { ...keyConfiguration(), ...body }),
    }
  },
  async max_pending_invitations() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}/members`
    const invitation = () => ({ email: `pending${++made}@example.org`, role: 'viewer' })
    return {
      operation: 'members.create',
      create: () => owner.post(path, invitation()),
      byAdmin: (body) => admin.post(path, { ...invitation(), ...body }),
    }
  },
  async max_invitations_per_project_per_day() {
    const { project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}/members`
    const invitation = () => ({ email: `daily${++made}@example.org`, role: 'viewer' })
    const managers = [await manager(project.id), await manager(project.id), await manager(project.id)]
    return {
      operation: 'members.create',
      create: async () => withdrawn(path, await managers.pop()?.post(path, invitation())),
      byAdmin: (body) => admin.post(path, { ...invitation(), ...body }),
    }
  },
  async max_invitations_per_user_per_day() {
    const ada = await stranger()
    const projects = await threeProjects()
    for (const { project } of projects) {
      await make.makeMember(project.id, { email: ada.user.email, role: 'admin' })
    }
    const invitation = () => ({ email: `ofuser${++made}@example.org`, role: 'viewer' })
    return {
      operation: 'members.create',
      create: () => ada.post(`/projects/${projects.pop()?.project.id}/members`, invitation()),
    }
  },
  async max_invitations_per_address_per_day() {
    const invitation = { email: `target${++made}@example.org`, role: 'viewer' }
    const projects = await threeProjects()
    return {
      operation: 'members.create',
      create: () => {
        const { owner, project } = projects.pop() ?? assert.fail()
        return owner.post(`/projects/${project.id}/members`, invitation)
      },
      byAdmin: async (body) => {
        const { project } = await ownProject({ plan_id: plan.id })
        return admin.post(`/projects/${project.id}/members`, { ...invitation, ...body })
      },
    }
  },
  async max_suppressions() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    await database.query(
      `insert into mail.suppressions (project_id, address, reason)
       select $1, 'bounced' || no || '@example.net', 'bounce' from generate_series(1, 5) as no`,
      [project.id],
    )
    const path = `/projects/${project.id}/suppressions`
    return {
      operation: 'suppressions.create',
      create: () => owner.post(path, { address: `gone${++made}@example.net` }),
    }
  },
  async max_projects_per_owner() {
    const ada = await stranger()
    return {
      operation: 'projects.create',
      create: () => ada.post('/projects', { name: `Shop ${++made}` }),
      byAdmin: (body) =>
        admin.post('/projects', { name: `Shop ${++made}`, user_id: ada.user.id, plan_id: plan.id, ...body }),
    }
  },
  async max_dkim_rotations_per_day() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const domain = await make.makeDomain(project.id, { mta_provider: 'service' })
    const path = `/projects/${project.id}/domains/${domain.id}/rotate`
    return {
      operation: 'domains.rotate',
      async create() {
        // The other cap on keys is not tested here.
        await database.query('update control.dkim_usage set keys_made = 0 where project_id = $1', [
          project.id,
        ])
        return owner.post(path, {})
      },
    }
  },
  async max_dkim_keys_per_day() {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    await make.allowServiceMta(project.id)
    const path = `/projects/${project.id}/domains`
    const domain = () => ({ name: `keys${++made}.example.org`, mta_provider: 'service' })
    return {
      operation: 'domains.create',
      create: () => owner.post(path, domain()),
      byAdmin: (body) => admin.post(path, { ...domain(), ...body }),
    }
  },
}

describe('a cap', () => {
  test('is tested for every name', () => {
    // Only administrators add platform-wide suppressions.
    const { max_platform_suppressions: _, ...ofCustomers } = capTable
    assert.deepEqual(Object.keys(cases).toSorted(), Object.keys(ofCustomers).toSorted())
  })

  for (const [name, prepare] of Object.entries(cases)) {
    test(`${name}: a request that would exceed it is rejected and stores nothing`, async () => {
      const { create, byAdmin, operation } = await prepare()
      for (let no = 0; no < most; no++) {
        const answer = await create()
        assert.ok(answer.status < 300, answer.text)
      }
      const before = await rowCounts()
      const refused = await create()
      assertProblem(refused, 422, 'limit_exceeded')
      assert.match(
        refused.body.message,
        new RegExp(`allows ${most} \\(${name}\\); this would be number ${most + 1}`),
      )
      assert.deepEqual(await rowCounts(), before)
      if (!byAdmin) return

      const withoutReason = await byAdmin({})
      assertProblem(withoutReason, 422, 'limit_exceeded')
      await assertNotAudited(withoutReason)
      const withReason = await byAdmin({ reason })
      assert.equal(withReason.status, 201, withReason.text)
      const [entry] = (await admin.get(`/audit?operation=${operation}&limit=1`)).body.data
      assert.deepEqual(entry.limit_exception, { limit: name, value: most, count: most + 1 })
      assert.equal(entry.reason, reason)
    })
  }

  test('holds for concurrent requests', async () => {
    const { create } = (await cases.max_endpoints?.()) ?? assert.fail()
    const answers = await Promise.all(Array.from({ length: 10 }, create))
    assert.equal(answers.filter(({ status }) => status === 201).length, most)
    const { create: suppress } = (await cases.max_suppressions?.()) ?? assert.fail()
    const suppressed = await Promise.all(Array.from({ length: 10 }, suppress))
    assert.equal(suppressed.filter(({ status }) => status === 201).length, most)
    const { create: start } = (await cases.max_projects_per_owner?.()) ?? assert.fail()
    const projects = await Promise.all(Array.from({ length: 10 }, start))
    assert.equal(projects.filter(({ status }) => status === 201).length, most)
  })

  test('is returned by usage.show with the used and allowed numbers', async () => {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    await owner.post(`/projects/${project.id}/endpoints`, endpointConfiguration)
    const usage = (await owner.get(`/projects/${project.id}/usage`)).body
    assert.deepEqual(usage.limits, [
      { name: 'max_domains', used: 0, allowed: 100 },
      { name: 'max_users', used: 1, allowed: 100 },
      { name: 'max_endpoints', used: 1, allowed: most },
      { name: 'max_routes', used: 0, allowed: most },
      { name: 'max_api_keys', used: 0, allowed: most },
      { name: 'max_pending_invitations', used: 0, allowed: most },
      { name: 'max_suppressions', used: 0, allowed: most },
      { name: 'max_bytes_per_day', used: 0, allowed: 10 * 1024 ** 3 },
      { name: 'max_inbound_bytes_per_day', used: 0, allowed: 1024 ** 3 },
      { name: 'max_forwards_per_day', used: 0, allowed: 10_000 },
    ])
    assert.deepEqual((await admin.get(`/projects/${project.id}/usage`)).body.limits, usage.limits)
  })
})

describe('a POST that creates nothing', () => {
  const idle: Record<string, () => Promise<() => Promise<Answer>>> = {
    async 'invitations.accept'() {
      const { project } = await ownProject({ plan_id: plan.id })
      const { id } = await make.makeMember(project.id)
      const token = `inv_${'B'.repeat(43)}`
      await database.query(
        'update control.members set invitation_hash = sha256($2::text::bytea) where id = $1',
        [id, token],
      )
      const grace = await stranger()
      return () => grace.post('/invitations/accept', { token })
    },
    async 'domains.verify'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const domain = await make.makeDomain(project.id)
      return () => owner.post(`/projects/${project.id}/domains/${domain.id}/verify`)
    },
    async 'messages.cancel'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { messageId } = await makeMail(project.id, { sendIn: '1 day' })
      return () => owner.post(`/projects/${project.id}/messages/${messageId}/cancel`)
    },
    async 'notices.appeal'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { id } = await make.makeIntervention(project.id)
      return () => owner.post(`/projects/${project.id}/notices/${id}/appeal`, { text: 'It is over.' })
    },
    async 'endpoints.rotate'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { resource } = await make.makeEndpoint(project.id)
      return () => owner.post(`/projects/${project.id}/endpoints/${resource.id}/rotate`, {})
    },
    async 'endpoints.test'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { resource } = await make.makeEndpoint(project.id)
      return () => owner.post(`/projects/${project.id}/endpoints/${resource.id}/test`)
    },
    async 'endpoints.replay'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { resource } = await make.makeEndpoint(project.id)
      const event_id = await makeEvent(project.id)
      return () => owner.post(`/projects/${project.id}/endpoints/${resource.id}/replay`, { event_id })
    },
    async 'routing.request-confirmation'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const forward = { action: 'forward', forward_to: 'ada@example.net' } as const
      const { id } = await make.makeRoute(project.id, forward)
      return () => owner.post(`/projects/${project.id}/routing/${id}/request-confirmation`, {})
    },
    async 'api-keys.rotate'() {
      const { owner, project } = await ownProject({ plan_id: plan.id })
      const { resource } = await make.makeApiKey(project.id)
      return () => owner.post(`/projects/${project.id}/api-keys/${resource.id}/rotate`, {})
    },
  }

  test('is tested for every operation', () => {
    const named = Object.entries(capsOfPosts).flatMap(([id, creates]) =>
      creates === 'creates nothing' ? [id] : [],
    )
    assert.deepEqual(Object.keys(idle).toSorted(), named.toSorted())
  })

  for (const [id, prepare] of Object.entries(idle)) {
    test(`${id} adds no row`, async () => {
      const act = await prepare()
      const before = await rowCounts()
      const answer = await act()
      assert.ok(answer.status < 300, answer.text)
      const after = await rowCounts()
      const more = [...after].flatMap(([table, count]) => (count > (before.get(table) ?? 0) ? [table] : []))
      assert.deepEqual(
        more.filter((table) => !(table in boundedOtherwise)),
        [],
      )
    })
  }
})
