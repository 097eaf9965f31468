import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bodyOf,
  type CustomerCall,
  customerCallsOf,
  customerRoutesOf,
  expectedOf,
  itemNoun,
  neverExisted,
  neverSent,
  pathOf,
  withoutId,
} from '../../testing/expectations/customer-calls.ts'
import { expectedCustomerOperations } from '../../testing/expectations/customer-operations.ts'
import { type CustomerActor, customerActors, named } from '../../testing/fixtures/customer-actors.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { makeForgedTokenContext } from '../../testing/fixtures/forged-token-context.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { exchange, type Received, type Sent } from '../../testing/harness/raw-http.ts'
import { sampleOf } from '../../testing/harness/sample.ts'
import { watchRoutes } from '../../testing/harness/watch-routes.ts'
import { startIssuer } from '../../testing/peers/issuer.ts'
import { allowedRoles } from '../roles.ts'
import { customerOperations } from '../routes.ts'
import { neededScopes } from '../scopes.ts'

/**
 * Access to the customer plane: every route of the running API, called by every kind of caller with every kind of path
 * parameter, compared with testing/expectations/customer-operations.ts.
 */
const issuers = { external: await startIssuer(), stranger: await startIssuer() }
const database = await testDatabase()
const [api, routes] = await watchRoutes(() =>
  startApi(database, {
    POSTERN_OIDC_ISSUERS: JSON.stringify([issuers.external.configuration]),
    POSTERN_CUSTOMER_PLAN_ID: '1',
  }),
)
const people = await customers(api, database)
const { make, admin } = people
const plan = await make.makePlan()
const { project } = await people.ownProject({ plan_id: plan.id })
const { project: otherProject } = await people.ownProject({ plan_id: plan.id })
const forgedTokens = await makeForgedTokenContext(api, database, await api.makeAdmin(), issuers)
const actors = await customerActors({ people, database, context: forgedTokens, project, otherProject })
await make.allowServiceMta(project.id)
await make.allowServiceMta(otherProject.id)

const domain = await make.makeDomain(project.id)
const sending = await make.makeDomain(project.id, { mta_provider: 'service', status: 'verified' })
const mail = mailRows(database)
await suppress()
let made = 0
const invitation = await startInvitation()
const world = {
  project,
  otherProject,
  makeOne: {
    members: async (projectId: number) => (await make.makeMember(projectId)).id,
    domains: async (projectId: number) => (await make.makeDomain(projectId, { mta_provider: 'service' })).id,
    endpoints: async (projectId: number) => (await make.makeEndpoint(projectId)).resource.id,
    routing: async (projectId: number) => (await make.makeRoute(projectId)).id,
    'api-keys': async (projectId: number) => (await make.makeApiKey(projectId)).resource.id,
    notices: startWarning,
    'delivery-attempts': async (projectId: number) =>
      mail.makeAttempt(projectId, 1, await mail.makeEvent(projectId)),
    messages: async (projectId: number) => (await mail.makeMail(projectId, { sendIn: '1 day' })).messageId,
  } as Record<string, (projectId: number) => Promise<number | string>>,
  suppressed: 'gone@example.net',
  changes: {
    'members.create': () => ({ email: `matrix${++made}@example.org` }),
    'domains.create': () => ({ name: `matrix${++made}.example.org` }),
    'domains.edit': () => ({ name: `edited${++made}.example.org` }),
    'routing.create': forwarding,
    'routing.edit': forwarding,
    'invitations.accept': () => ({ token: invitation }),
    'messages.send': () => ({ from: `a@${sending.name}` }),
    'messages.send-batch': () => ({
      messages: [{ from: `a@${sending.name}`, to: ['b@example.net'], subject: 's', text: 't' }],
    }),
    'suppressions.create': () => ({ address: `matrix${++made}@example.net` }),
  },
}

/** Not through the API, which limits the number of interventions in force. */
async function startWarning(projectId: number): Promise<number> {
  const [row] = await database.query<{ id: number }>(
    `insert into control.interventions (project_id, kind, source, reason)
     values ($1, 'warn', 'administrator', 'Needed') returning id::int`,
    [projectId],
  )
  return row?.id ?? assert.fail()
}

/** Creates an invitation and returns its valid token. */
async function startInvitation(): Promise<string> {
  const { id } = await make.makeMember(otherProject.id)
  const token = `inv_${'A'.repeat(43)}`
  await database.query('update control.members set invitation_hash = sha256($2::text::bytea) where id = $1', [
    id,
    token,
  ])
  return token
}

/** Called again after each request that deletes the suppression. */
async function suppress(): Promise<void> {
  await database.query(
    `insert into mail.suppressions (project_id, address, reason)
     select id, 'gone@example.net', 'manual' from unnest($1::bigint[]) as id on conflict do nothing`,
    [[project.id, otherProject.id]],
  )
}

function forwarding(): object {
  return {
    domain_id: domain.id,
    address: `matrix${++made}@${domain.name}`,
    action: 'forward',
    endpoint_id: null,
    forward_to: 'helpdesk@example.net',
  }
}

const customerRoutes = customerRoutesOf(routes)
const calls: CustomerCall[] = []
for (const route of customerRoutes) calls.push(...(await customerCallsOf(route, world)))

const isRead = ({ method }: Sent) => method === 'GET'
/** Whether the request succeeds and changes something. Such requests need their own resource and run one by one. */
const isAct = (actor: CustomerActor, call: CustomerCall) =>
  !isRead(call) && expectedOf(actor, call).error === null

const sendAs = ({ headers }: CustomerActor, requests: readonly Sent[]): Promise<Received[]> =>
  exchange(
    api.url,
    requests.map((sent) => ({ ...sent, headers: { ...sent.headers, ...headers } })),
  )

let combinations = 0

function faultsOf(
  actor: CustomerActor,
  sent: readonly CustomerCall[],
  answers: readonly Received[],
): string[] {
  combinations += sent.length
  return sent
    .flatMap((call, index) => {
      const answer = answers[index] ?? assert.fail()
      const { status, error } = expectedOf(actor, call)
      const isRight = answer.status === status && (error === null || JSON.parse(answer.text).error === error)
      return isRight ? [] : [`${call.about}: ${answer.status} ${answer.text}, not ${status} ${error}`]
    })
    .slice(0, 10)
}

/** The last use of a key is recorded asynchronously after every response. */
const allRows = await watchRows(database, { except: ['control.api_key_stats', 'control.denials'] })

describe('the access tables', () => {
  test('list exactly the existing operations', () => {
    const ids = customerOperations.map(({ id }) => id)
    assert.deepEqual(Object.keys(allowedRoles).toSorted(), ids.toSorted())
    assert.deepEqual(Object.keys(neededScopes).toSorted(), ids.toSorted())
    assert.deepEqual(Object.keys(expectedCustomerOperations).toSorted(), ids.toSorted())
  })

  test('allow no API key to manage projects, members, keys or invitations', () => {
    const scoped = Object.entries(neededScopes).filter(([id]) =>
      /^(projects|members|api-keys|invitations)\./.test(id),
    )
    assert.deepEqual(new Set(scoped.map(([, scope]) => scope)), new Set([null]))
  })
})

describe('every caller gets the expected response', () => {
  for (const actor of actors) {
    test(actor.who, async () => {
      const questions = calls.filter((call) => !isAct(actor, call))
      const asked = sampleOf(questions, 8, ({ route }) => `${route.method} ${route.url}`)
      assert.deepEqual(faultsOf(actor, asked, await sendAs(actor, asked)), [])
      await allRows.assertUntouched('a refused request or a read changed something')
    })
  }
})

describe('an authorised caller can change resources', () => {
  const authorised = actors.filter(({ role, scopes, isForeign }) => (role || scopes) && !isForeign)
  for (const actor of authorised) {
    const acts = customerRoutes.filter((route) => {
      const { operation, method } = route
      const call = { route, project: 'found', item: 'found' } as CustomerCall
      // Each of these consumes its project or invitation and has a separate test.
      const isSingular = ['projects.delete', 'invitations.accept'].includes(operation.id)
      return !isSingular && method !== 'GET' && expectedOf(actor, call).error === null
    })
    if (acts.length === 0) continue
    test(`${actor.who}: ${acts.length} mutations`, async () => {
      for (const route of acts) {
        const noun = itemNoun(route.url)
        const id = noun === undefined ? 0 : await world.makeOne[noun]?.(project.id)
        const path = pathOf(route.url, { project_id: project.id, id: id ?? 0, address: world.suppressed })
        const [answer] = await sendAs(actor, [{ method: route.method, path, ...bodyOf(route, world) }])
        combinations++
        await suppress()
        const isManager = actor.role === 'owner' || actor.role === 'admin'
        // Every member can leave; only managers can remove others.
        const expected = route.operation.id === 'members.delete' && !isManager ? 403 : route.expected.status
        assert.equal(answer?.status, expected, `${route.operation.id}: ${answer?.text}`)
      }
    })
  }
})

describe("another customer's project", () => {
  const strangers = ['a user without a project', 'a removed member', 'an invited user who has not accepted']
  const inPath = customerRoutes.filter(({ project }) => project === 'in path')

  for (const who of [...strangers, 'an administrator who is not a member', 'a key of another project']) {
    test(`is indistinguishable from one that never existed: ${who}`, async () => {
      const actor = named(actors, who)
      for (const route of inPath) {
        const noun = itemNoun(route.url)
        const id = noun === undefined ? 0 : ((await world.makeOne[noun]?.(project.id)) ?? 0)
        const ask = async (project_id: number, id: number | string) => {
          const path = pathOf(route.url, { project_id, id, address: world.suppressed })
          const [answer] = await sendAs(actor, [{ method: route.method, path, ...bodyOf(route, world) }])
          return answer ?? assert.fail()
        }
        const [existing, never] = [await ask(project.id, id), await ask(neverExisted, id)]
        combinations += 2
        const bare = ({ head }: Received) => head.replace(/^content-length: .*$/im, '')
        assert.equal(existing.status, never.status, route.url)
        assert.equal(bare(existing), bare(never), route.url)
        const name = (id: number) => `project ${id}.`
        assert.equal(
          existing.text.replace(name(project.id), '#'),
          never.text.replace(name(neverExisted), '#'),
          route.url,
        )
      }
    })
  }

  test('is byte-identical to a deleted one', async () => {
    const { owner, project: shortLived } = await people.ownProject({ plan_id: plan.id })
    const actor = named(actors, 'a user without a project')
    const requests = inPath.map((route) => ({
      method: route.method,
      path: pathOf(route.url, {
        project_id: shortLived.id,
        id: itemNoun(route.url) === 'messages' ? neverSent : 1,
        address: world.suppressed,
      }),
      ...bodyOf(route, world),
    }))
    const before = await sendAs(actor, requests)
    assert.equal((await owner.delete(`/projects/${shortLived.id}`)).status, 204)
    assert.deepEqual(await sendAs(actor, requests), before)
    combinations += 2 * requests.length
  })
})

describe("another project's resource, requested under the caller's project", () => {
  for (const route of customerRoutes.filter(({ url }) => itemNoun(url) !== undefined)) {
    test(`is indistinguishable from a deleted or missing one: ${route.method} ${route.url}`, async () => {
      const noun = itemNoun(route.url) ?? ''
      const id = (await world.makeOne[noun]?.(otherProject.id)) ?? assert.fail()
      // Members do not use the path for API keys. The last caller also requests the deleted resource.
      const callers = route.project === 'of key' ? [] : ['the owner']
      for (const [place, who] of ['a key with every scope', ...callers].entries()) {
        const isLast = place === callers.length
        const actor = named(actors, who)
        const ask = async (id: number | string) => {
          const path = pathOf(route.url, { project_id: project.id, id })
          const [answer] = await sendAs(actor, [{ method: route.method, path, ...bodyOf(route, world) }])
          combinations++
          return answer ?? assert.fail()
        }
        const foreign = await ask(id)
        const absent = typeof id === 'string' ? neverSent : neverExisted
        const never = await ask(absent)
        assert.equal(withoutId(never.text, absent), withoutId(foreign.text, id))
        if (!isLast) continue
        assert.equal(foreign.status, 404)
        if (typeof id === 'string') await mail.dropMail(otherProject.id, id)
        else if (noun === 'notices')
          await database.query('delete from control.interventions where id = $1', [id])
        else {
          const path = `/projects/${otherProject.id}/${noun}/${id}`
          assert.equal((await admin.delete(path, { reason: 'Not needed' })).status, 204)
        }
        assert.deepEqual(await ask(id), foreign)
      }
    })
  }
})

test('every caller called every route', (t) => {
  assert.ok(combinations > customerRoutes.length * (actors.length - 5))
  t.diagnostic(
    `${combinations} combinations: ${actors.length} callers, ${customerRoutes.length} routes, ${calls.length} requests`,
  )
})
