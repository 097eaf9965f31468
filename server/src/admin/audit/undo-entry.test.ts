import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shellOperations, systemOperations } from '../../core/control/audit/unattended-operations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures, planConfiguration } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { isMutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { irreversible, reversibleEdits } from './undo-table.ts'

/** Random edits that are undone. `POSTERN_TEST_CASES` sets the number for each operation. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 15)

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const make = fixtures(database, admin)
const chance = new Chance(seed)
const reason = 'A mistake'

const entryOf = async ({ headers }: Answer): Promise<number> => {
  const [row] = await database.query<{ id: string }>('select id from control.audit where request_id = $1', [
    headers.get('x-request-id'),
  ])
  return Number(row?.id ?? assert.fail('no audit row'))
}

const versionOf = ({ headers }: Answer): number => Number(/\d+/.exec(headers.get('etag') ?? '')?.[0])

const undo = (id: number, query = '') => admin.post(`/audit/${id}/undo${query}`, { reason })

async function edit(path: string, body: object): Promise<Answer> {
  const answer = await admin.patch(path, body)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

type Fields = Record<string, unknown>

interface Edited {
  path: string
  /** A random change. */
  draw(current: Fields): Fields
  /** The fields that an undo must restore. */
  fields: readonly string[]
}

const plans = await Promise.all([1, 2, 3].map(() => make.makePlan()))
const text = () => `Name ${chance.below(1_000_000)}`
const subset = (from: Fields, fields: readonly string[]) =>
  Object.fromEntries(fields.map((field) => [field, from[field]]))

/** A new value for some of the fields. */
const someOf = (drawn: Fields): Fields =>
  subset(drawn, chance.some(1 + chance.below(Object.keys(drawn).length), Object.keys(drawn)))

const planFields = Object.keys(planConfiguration)
const endpointFields = ['name', 'url', 'events', 'is_active']
const routeFields = ['domain_id', 'match', 'address', 'action', 'endpoint_id', 'forward_to', 'is_active']
const keyFields = ['name', 'scopes', 'domain_id', 'allowed_ips', 'expires_at', 'is_active']
const projectFields = ['name', 'is_locked', 'allow_service_mta', 'plan_id', 'admin_plan_id']

const resources: Record<string, () => Promise<Edited>> = {
  'projects.edit': async () => ({
    path: `/projects/${(await make.makeProject()).id}`,
    fields: [...projectFields, 'admin_subscription_status', 'reputation_score'],
    draw: () => ({
      ...someOf({
        name: text(),
        is_locked: chance.happens(0.5),
        allow_service_mta: chance.happens(0.5),
        plan_id: chance.pick(plans).id,
        admin_plan_id: chance.pick([null, ...plans.map(({ id }) => id)]),
        admin_subscription_status: chance.pick([null, 'active', 'canceled']),
        reputation_score: chance.below(101),
      }),
      reason,
    }),
  }),
  'plans.edit': async () => ({
    path: `/plans/${(await make.makePlan()).id}`,
    fields: planFields,
    draw: () =>
      someOf({
        name: text(),
        description: text(),
        max_domains: chance.below(100),
        max_mails_per_month: chance.below(1_000_000),
        price: chance.below(10_000) / 100,
        is_active: chance.happens(0.5),
      }),
  }),
  'endpoints.edit': async () => {
    const { id } = await make.makeProject()
    const { resource } = await make.makeEndpoint(id)
    return {
      path: `/projects/${id}/endpoints/${resource.id}`,
      fields: endpointFields,
      draw: (current) => ({
        ...subset(current, endpointFields),
        ...someOf({
          name: text(),
          url: `https://hooks.example.com/${chance.below(1000)}`,
          events: chance.some(1 + chance.below(3), ['message.sent', 'message.bounced', 'message.delivered']),
          is_active: chance.happens(0.5),
        }),
      }),
    }
  },
  'routing.edit': async () => {
    const { id } = await make.makeProject()
    const { resource } = await make.makeEndpoint(id)
    const domains = await Promise.all([1, 2].map(() => make.makeDomain(id)))
    const route = await make.makeRoute(id, { domain_id: domains[0]?.id ?? 0 })
    return {
      path: `/projects/${id}/routing/${route.id}`,
      fields: routeFields,
      draw: () => {
        const domain = chance.pick(domains)
        return {
          domain_id: domain.id,
          ...chance.pick([
            { match: 'catch_all', address: null },
            { match: 'address', address: `a${chance.below(1000)}@${domain.name}` },
          ]),
          ...chance.pick([
            { action: 'reject', endpoint_id: null, forward_to: null },
            { action: 'endpoint', endpoint_id: resource.id, forward_to: null },
            { action: 'forward', endpoint_id: null, forward_to: `p${chance.below(1000)}@example.net` },
          ]),
          is_active: chance.happens(0.5),
        }
      },
    }
  },
  'api-keys.edit': async () => {
    const { id } = await make.makeProject()
    const domain = await make.makeDomain(id)
    const { resource } = await make.makeApiKey(id)
    return {
      path: `/projects/${id}/api-keys/${resource.id}`,
      fields: keyFields,
      draw: (current) => ({
        ...subset(current, keyFields),
        ...someOf({
          name: text(),
          scopes: chance.some(1 + chance.below(3), ['messages:send', 'messages:read', 'domains:read']),
          domain_id: chance.pick([null, domain.id]),
          allowed_ips: chance.pick([[], ['192.0.2.1'], ['192.0.2.0/24', '2001:db8::/32']]),
          expires_at: chance.pick([null, '2030-01-01T00:00:00.000Z']),
          is_active: chance.happens(0.5),
        }),
      }),
    }
  },
  'members.edit': async () => {
    const { id } = await make.makeProject()
    const member = await make.makeMember(id)
    return {
      path: `/projects/${id}/members/${member.id}`,
      fields: ['role'],
      draw: () => ({ role: chance.pick(['admin', 'developer', 'viewer']) }),
    }
  },
}

describe('audit.undo', () => {
  for (const { edit: operation } of reversibleEdits) {
    test(`restores what ${operation.id} changed`, async () => {
      const resource = await (resources[operation.id] ?? assert.fail(operation.id))()
      let undone = 0
      for (let drawn = 0; undone < cases && drawn < 10 * cases; drawn++) {
        const first = await admin.get(resource.path)
        const before = first.body
        const changed = await edit(resource.path, resource.draw(before))
        if (versionOf(changed) === versionOf(first)) continue
        const id = await entryOf(changed)
        const answer = await undo(id)
        const context = `seed ${seed}: ${answer.text}`
        assert.equal(answer.status, 200, context)
        const last = await admin.get(resource.path)
        assert.deepEqual(subset(last.body, resource.fields), subset(before, resource.fields), context)
        assert.ok(versionOf(last) > versionOf(changed), context)
        assert.equal(answer.body.version, versionOf(last))
        const { body: entry } = await admin.get(`/audit/${await entryOf(answer)}`)
        const { operation: recorded, related, resource_id } = entry
        assert.deepEqual([recorded, entry.reason], ['audit.undo', reason])
        assert.deepEqual(related.at(-1), { resource: 'audit_entry', id, before: null, after: null })
        assert.equal(resource_id, answer.body.resource_id)
        // Every other one stays, so the next edit begins with different values.
        if (chance.happens(0.5)) await undo(await entryOf(answer))
        undone += 1
      }
      assert.equal(undone, cases)
    })

    test(`refuses to overwrite a later change after ${operation.id}`, async () => {
      const resource = await (resources[operation.id] ?? assert.fail(operation.id))()
      const first = await admin.get(resource.path)
      const before = first.body
      const changed = await differing(resource, first)
      const id = await entryOf(changed)
      const again = await edit(resource.path, {
        ...(operation.isCompleteConfiguration && subset(before, resource.fields)),
        ...otherThan(changed.body, before, resource),
        reason,
      })
      assertProblem(await undo(id), 409, 'changed_since')
      assertProblem(await undo(id, '?dry_run=true'), 409, 'changed_since')
      assert.equal(versionOf(await admin.get(resource.path)), versionOf(again))
    })
  }

  test('knows for every audited operation whether it can be undone', () => {
    const mutations = adminOperations.filter(isMutation).map(({ id }) => id)
    const audited = [...mutations, ...shellOperations, ...systemOperations].filter(
      (id) => id !== 'audit.undo',
    )
    const known = [...Object.keys(irreversible), ...reversibleEdits.map(({ edit: { id } }) => id)]
    assert.deepEqual(known.sort(), [...new Set(audited)].sort())
  })

  test('says what to do instead for other entries', async () => {
    const { id } = await make.makeProject()
    const { status, headers } = await admin.post(`/projects/${id}/queue/hold`, { reason })
    assert.equal(status, 200)
    const answer = await undo(await entryOf({ status, headers, text: '', body: null }))
    assertProblem(answer, 409, 'not_reversible')
    assert.match(answer.body.message, /Edit it, end it or start another one instead/)
  })

  test('does not undo a transfer, and needs a reason', async () => {
    const project = await make.makeProject()
    const { id: user_id } = await make.makeUser()
    const transfer = await edit(`/projects/${project.id}`, { user_id, reason })
    assertProblem(await undo(await entryOf(transfer)), 409, 'not_reversible')
    const renamed = await entryOf(await edit(`/projects/${project.id}`, { name: 'Another' }))
    assertProblem(await admin.post(`/audit/${renamed}/undo`, {}), 422, 'reason_required')
    const preview = await admin.post(`/audit/${renamed}/undo?dry_run=true`, {})
    assert.equal(preview.status, 200, preview.text)
    assert.deepEqual(
      preview.body.changes.map(({ field, after }: { field: string; after: unknown }) => [field, after]),
      [['name', project.name]],
    )
  })

  test('keeps a later change of another field', async () => {
    const { id, name } = await make.makeProject()
    const renamed = await entryOf(await edit(`/projects/${id}`, { name: 'Another' }))
    await edit(`/projects/${id}`, { allow_service_mta: true, reason })
    assert.equal((await undo(renamed)).status, 200)
    const { body } = await admin.get(`/projects/${id}`)
    assert.deepEqual([body.name, body.allow_service_mta], [name, true])
  })

  test('does not end a lock that somebody else started since', async () => {
    const { id } = await make.makeProject()
    const locked = await entryOf(await edit(`/projects/${id}`, { is_locked: true, reason }))
    await make.makeIntervention(id, {
      kind: 'lock',
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
    assertProblem(await undo(locked), 409, 'changed_since')
    assert.equal((await admin.get(`/projects/${id}`)).body.is_locked, true)
  })

  test('does not make a temporary override permanent', async () => {
    const { id } = await make.makeProject()
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const temporary = await edit(`/projects/${id}`, { admin_plan_id: plans[0]?.id, expires_at, reason })
    const permanent = await entryOf(await edit(`/projects/${id}`, { admin_plan_id: plans[1]?.id, reason }))
    const answer = await undo(permanent)
    assertProblem(answer, 409, 'not_reversible')
    assert.match(answer.body.message, /replaced a temporary override of "admin_plan_id"/)
    assert.equal((await admin.get(`/projects/${id}`)).body.admin_plan_id, plans[1]?.id)
    assertProblem(await undo(await entryOf(temporary)), 409, 'changed_since')

    const other = await make.makeProject()
    const path = `/projects/${other.id}`
    const overridden = await entryOf(
      await edit(path, { reputation_score: 40, admin_plan_id: plans[0]?.id, expires_at, reason }),
    )
    const undone = await undo(overridden)
    assert.equal(undone.status, 200, undone.text)
    assert.deepEqual((await admin.get(`${path}/reversals`)).body.data, [])
    assertProblem(await undo(await entryOf(undone)), 409, 'not_reversible')
    assert.equal((await admin.get(path)).body.admin_plan_id, null)
  })

  test('reports a deleted resource, and an address that was erased', async () => {
    const { id } = await make.makeProject()
    const member = await make.makeMember(id)
    const path = `/projects/${id}/members/${member.id}`
    const entry = await entryOf(await edit(path, { role: 'viewer' }))
    await admin.delete(path, { reason })
    assertProblem(await undo(entry), 409, 'changed_since')

    const route = await make.makeRoute(id, { action: 'forward', forward_to: 'old@example.net' })
    const forwarded = await edit(`/projects/${id}/routing/${route.id}`, {
      ...subset(route as Fields, routeFields),
      forward_to: 'new@example.net',
    })
    const erased = await entryOf(forwarded)
    await database.query(
      "delete from control.audit_people where audit_id = $1 and part = 'before.forward_to'",
      [erased],
    )
    const answer = await undo(erased)
    assertProblem(answer, 409, 'not_reversible')
    assert.match(answer.body.message, /erased/)
  })
})

/** A random edit that changes something. */
async function differing(resource: Edited, first: Answer): Promise<Answer> {
  for (let drawn = 0; drawn < 100; drawn++) {
    const changed = await edit(resource.path, resource.draw(first.body))
    if (versionOf(changed) !== versionOf(first)) return changed
  }
  return assert.fail('no draw changes anything')
}

/** The fields that the first edit changed, with other values than before and after it, or at least than after it. */
function otherThan(changed: Fields, before: Fields, resource: Edited): Fields {
  const fields = resource.fields.filter(
    (field) => JSON.stringify(changed[field]) !== JSON.stringify(before[field]),
  )
  return subset(before, fields)
}
