import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { verifyActivity } from '../../core/control/activity/verify.ts'
import { relayToControl } from '../../core/outbox/relay-to-control.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { type Customer, customers } from '../../testing/fixtures/customers.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import type { Answer } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import type { CustomerOperation } from '../operation.ts'
import { customerOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/** Every change by a customer writes an activity row in the same transaction, or fails. */
const database = await testDatabase()
const first = await startApi(database)
const plan = await fixtures(database, (await customers(first, database)).admin).makePlan({
  max_domains: 100,
  max_users: 100,
})
const api = await startApi(database, { POSTERN_CUSTOMER_PLAN_ID: String(plan.id) })
const { admin, make, ownProject, stranger, keyOf } = await customers(api, database)
const mail = mailRows(database)
const { mail: mailDb } = api.context.cells.all[0]
const relay = () => relayToControl({ db: api.context.db.admin, mailDb })

interface Act {
  by: Customer
  projectId: number
  path: string
  body?: object
  /** The resource recorded in the row. The id is null if the resource has no id. */
  resource: [type: string, id?: number | string | null]
}

let made = 0
const own = async () => {
  const { owner, project } = await ownProject({ plan_id: plan.id })
  await make.allowServiceMta(project.id)
  return { by: owner, projectId: project.id, path: `/projects/${project.id}` }
}
const ofThing =
  (
    noun: string,
    type: string,
    makeOne: (projectId: number) => Promise<number>,
    rest = '',
    body: object = {},
  ) =>
  async (): Promise<Act> => {
    const act = await own()
    const id = await makeOne(act.projectId)
    return { ...act, path: `${act.path}/${noun}/${id}${rest}`, body, resource: [type, id] }
  }
const domain = (projectId: number) => make.makeDomain(projectId, { mta_provider: 'service' })
const domainId = async (projectId: number) => (await domain(projectId)).id
const endpointId = async (projectId: number) => (await make.makeEndpoint(projectId)).resource.id
const keyId = async (projectId: number) => (await make.makeApiKey(projectId)).resource.id
const routeId = async (projectId: number) => (await make.makeRoute(projectId)).id
const interventionId = async (projectId: number) => (await make.makeIntervention(projectId)).id
const memberId = async (projectId: number) => (await make.makeMember(projectId)).id
const creates =
  (noun: string, type: string, body: () => object = () => ({})) =>
  async (): Promise<Act> => {
    const act = await own()
    return { ...act, path: `${act.path}/${noun}`, body: body(), resource: [type] }
  }
async function routing(by: Awaited<ReturnType<typeof own>>) {
  const { id, name } = await domain(by.projectId)
  const target = { action: 'forward', endpoint_id: null, forward_to: 'helpdesk@example.net', is_active: true }
  return { domain_id: id, match: 'address', address: `a${++made}@${name}`, ...target }
}
const suppressed = async (projectId: number) => {
  const address = `gone${++made}@example.net`
  await database.query(
    `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'manual')`,
    [projectId, address],
  )
  return address
}

const acts: Partial<Record<CustomerOperation['id'], () => Promise<Act>>> = {
  'projects.create': async () => {
    const by = await stranger()
    return { by, projectId: 0, path: '/projects', body: { name: 'Shop' }, resource: ['project'] }
  },
  'projects.edit': async () => {
    const act = await own()
    return { ...act, body: { name: `Shop ${++made}` }, resource: ['project', act.projectId] }
  },
  'projects.delete': async () => {
    const act = await own()
    return { ...act, body: {}, resource: ['project', act.projectId] }
  },
  'invitations.accept': async () => {
    const { projectId } = await own()
    const { id } = await make.makeMember(projectId)
    const token = `inv_${String(++made).padStart(43, 'C')}`
    await database.query(
      'update control.members set invitation_hash = sha256($2::text::bytea) where id = $1',
      [id, token],
    )
    const by = await stranger()
    return { by, projectId, path: '/invitations/accept', body: { token }, resource: ['member', id] }
  },
  'members.create': creates('members', 'member', () => ({ email: `a${++made}@example.org` })),
  'members.edit': ofThing('members', 'member', memberId, '', { role: 'admin' }),
  'members.delete': ofThing('members', 'member', memberId),
  'domains.create': creates('domains', 'domain', () => ({ name: `a${++made}.example.org` })),
  'domains.edit': async () => {
    const act = await ofThing('domains', 'domain', domainId)()
    return { ...act, body: { name: `b${++made}.example.org`, preserve_local_parts: true } }
  },
  'domains.verify': ofThing('domains', 'domain', domainId, '/verify'),
  'domains.rotate': ofThing('domains', 'domain', domainId, '/rotate'),
  'domains.delete': ofThing('domains', 'domain', domainId),
  'endpoints.create': creates('endpoints', 'endpoint'),
  'endpoints.edit': ofThing('endpoints', 'endpoint', endpointId),
  'endpoints.rotate': ofThing('endpoints', 'endpoint', endpointId, '/rotate'),
  'endpoints.test': ofThing('endpoints', 'endpoint', endpointId, '/test'),
  'endpoints.replay': async () => {
    const act = await ofThing('endpoints', 'endpoint', endpointId, '/replay')()
    return { ...act, body: { event_id: await mail.makeEvent(act.projectId) } }
  },
  'endpoints.delete': ofThing('endpoints', 'endpoint', endpointId),
  'routing.create': async () => {
    const act = await own()
    return { ...act, path: `${act.path}/routing`, body: await routing(act), resource: ['route'] }
  },
  'routing.edit': async () => {
    const act = await ofThing('routing', 'route', routeId)()
    return { ...act, body: await routing(act as never) }
  },
  'routing.request-confirmation': ofThing('routing', 'route', routeId, '/request-confirmation'),
  'routing.delete': ofThing('routing', 'route', routeId),
  'api-keys.create': creates('api-keys', 'api_key'),
  'api-keys.edit': ofThing('api-keys', 'api_key', keyId),
  'api-keys.rotate': ofThing('api-keys', 'api_key', keyId, '/rotate'),
  'api-keys.delete': ofThing('api-keys', 'api_key', keyId),
  'messages.cancel': async () => {
    const act = await own()
    const { messageId } = await mail.makeMail(act.projectId, { sendIn: '1 day' })
    return { ...act, path: `${act.path}/messages/${messageId}/cancel`, resource: ['message', messageId] }
  },
  'notices.appeal': ofThing('notices', 'notice', interventionId, '/appeal'),
  'suppressions.create': async () => {
    const act = await creates('suppressions', 'suppression')()
    return { ...act, body: { address: `new${++made}@example.net` }, resource: ['suppression', null] }
  },
  'suppressions.import': async () => {
    const act = await own()
    const path = `${act.path}/suppressions/import`
    return { ...act, path, body: { csv: `new${++made}@example.net` }, resource: ['suppression', null] }
  },
  'suppressions.delete': async () => {
    const act = await own()
    const address = await suppressed(act.projectId)
    return { ...act, path: `${act.path}/suppressions/${address}`, resource: ['suppression', null] }
  },
}

const writes = customerOperations.filter((operation) => methodOf(operation) !== 'GET')
const unrecorded = writes.flatMap((operation) =>
  'leavesNoActivity' in operation && operation.leavesNoActivity !== undefined ? [operation.id] : [],
)
/** The body is the operation's example, overridden by the fields in `body`. */
const perform = (operation: CustomerOperation, { by, path, body }: Act): Promise<Answer> =>
  by.request(methodOf(operation), path, { ...('example' in operation ? exampleOf(operation) : {}), ...body })
const exampleOf = ({ id, example }: CustomerOperation & { example: object }): object =>
  ['endpoints.replay', 'domains.edit', 'routing.create', 'routing.edit'].includes(id) ? {} : example

const rowsOf = (requestId: string | null) =>
  database.query<Record<string, unknown>>(
    `select project_id::int, seq::int, actor_type, actor_id::int, operation, resource_type, resource_id,
            activity::text as whole
       from control.project_activity as activity where request_id = $1`,
    [requestId],
  )

describe("a project's activity", () => {
  test('records every mutation except sending', () => {
    assert.deepEqual(unrecorded, ['messages.send', 'messages.send-batch'])
    const tried = Object.keys(acts)
    const expected = writes.map(({ id }) => id).filter((id) => !unrecorded.includes(id))
    assert.deepEqual(tried.toSorted(), expected.toSorted())
  })

  for (const operation of writes.filter(({ id }) => id in acts)) {
    test(`records ${operation.id} with its actor and resource, without secrets`, async () => {
      const act = (await acts[operation.id]?.()) ?? assert.fail()
      const answer = await perform(operation, act)
      assert.ok(answer.status < 300, answer.text)
      await relay()
      const rows = await rowsOf(answer.headers.get('x-request-id'))
      assert.equal(rows.length, 1)
      const [row = {}] = rows
      const [type, id = answer.body.resource?.id ?? answer.body.id] = act.resource
      assert.deepEqual(
        [row['actor_type'], row['actor_id'], row['operation'], row['resource_type'], row['resource_id']],
        ['user', act.by.user.id, operation.id, type, id === null ? null : String(id)],
      )
      assert.equal(row['project_id'], act.projectId || answer.body.id)
      const { secret } = (answer.body ?? {}) as { secret?: string }
      if (secret) assert.ok(!String(row['whole']).includes(secret))
      assert.doesNotMatch(String(row['whole']), /@(?!")[\w.]+/, 'an address is in the chain')
    })

    test(`is written atomically with ${operation.id}`, async () => {
      const act = (await acts[operation.id]?.()) ?? assert.fail()
      const before = await watchRows(database, { except: ['control.api_key_stats'] })
      // A change in the mail database writes its row to the outbox, and the relay copies the row.
      const isOnMailSide = 'runsIn' in operation && operation.runsIn === 'mail'
      const table = isOnMailSide ? 'mail.outbox' : 'control.project_activity'
      await database.query(`create function public.refuse() returns trigger language plpgsql as
        $$ begin raise exception 'no activity can be written'; end $$;
        create trigger fault before insert on ${table} for each row execute function public.refuse()`)
      try {
        assertProblem(await perform(operation, act), 500, 'internal_error')
        await before.assertUntouched(`${operation.id} was committed without its row`)
      } finally {
        await database.query(`drop trigger fault on ${table}; drop function public.refuse()`)
      }
      const answer = await perform(operation, act)
      assert.ok(answer.status < 300, answer.text)
    })
  }

  test('names the API key that acted, and records no edit that changes nothing', async () => {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const key = await keyOf(project.id, ['endpoints:write'])
    const { resource } = await make.makeEndpoint(project.id)
    const { name, url, events, is_active } = resource
    const path = `/projects/${project.id}/endpoints/${resource.id}`
    assert.equal((await key.patch(path, { name, url, events, is_active })).status, 200)
    const edited = await key.patch(path, { name: 'Renamed', url, events, is_active })
    assert.equal(edited.status, 200, edited.text)
    const { data } = (await owner.get(`/projects/${project.id}/activity`)).body
    assert.equal(data.length, 1)
    const [{ actor, before, after }] = data
    assert.deepEqual([actor.type, actor.id, actor.email], ['api_key', key.id, null])
    assert.deepEqual([before.name, after.name], [name, 'Renamed'])
  })

  test('records no rejected request, and a repeated request once', async () => {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const path = `/projects/${project.id}`
    assert.equal((await owner.patch(path, { name: '' })).status, 422)
    const headers = { 'idempotency-key': 'rename' }
    await owner.patch(path, { name: 'Once' }, headers)
    await owner.patch(path, { name: 'Once' }, headers)
    const { data } = (await owner.get(`${path}/activity`)).body
    assert.deepEqual(
      data.map(({ operation }: { operation: string }) => operation),
      ['projects.edit'],
    )
  })

  test('names the creator of a key, as the table of API keys does', async () => {
    const { owner, project } = await ownProject({ plan_id: plan.id })
    const operation = customerOperations.find(({ id }) => id === 'api-keys.create')
    const example = operation && 'example' in operation ? operation.example : assert.fail()
    const mine = await owner.post(`/projects/${project.id}/api-keys`, example)
    const theirs = await make.makeApiKey(project.id)
    const makers = await database.query(
      `select id::int, created_by_type as type, created_by_id::int as by from control.api_keys
        where project_id = $1 order by id`,
      [project.id],
    )
    assert.deepEqual(makers, [
      { id: mine.body.resource.id, type: 'user', by: owner.user.id },
      { id: theirs.resource.id, type: 'administrator', by: admin.userId },
    ])
  })

  test('has intact chains at the end', async () => {
    const { ok, first_bad, rows } = await verifyActivity(api.context.db.admin)
    assert.deepEqual([ok, first_bad], [true, null])
    assert.ok(rows > writes.length)
  })
})
