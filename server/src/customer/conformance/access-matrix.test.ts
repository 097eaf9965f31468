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
  successOf,
  withoutId,
} from '../../testing/expectations/customer-calls.ts'
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
 * Who may call what on the customers' side: every route that the running API has, by everybody who might knock, about
 * everything that they might ask for, as the tables of roles and scopes say.
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
const scene = await makeForgedTokenContext(api, database, await api.makeAdmin(), issuers)
const cast = await customerActors({ people, database, context: scene, project, otherProject })
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

/** A token that is good, for whoever gets so far. */
async function startInvitation(): Promise<string> {
  const { id } = await make.makeMember(otherProject.id)
  const token = `inv_${'A'.repeat(43)}`
  await database.query('update control.members set invitation_hash = sha256($2::text::bytea) where id = $1', [
    id,
    token,
  ])
  return token
}

/** Again after each act that takes it back. */
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
/** Whether it would be done, and so must have a thing of its own and its own place among the others. */
const isAct = (knocker: CustomerActor, call: CustomerCall) =>
  !isRead(call) && expectedOf(knocker, call).error === null

const sendAs = ({ headers }: CustomerActor, requests: readonly Sent[]): Promise<Received[]> =>
  exchange(
    api.url,
    requests.map((sent) => ({ ...sent, headers: { ...sent.headers, ...headers } })),
  )

let combinations = 0

function faultsOf(
  knocker: CustomerActor,
  sent: readonly CustomerCall[],
  answers: readonly Received[],
): string[] {
  combinations += sent.length
  return sent
    .flatMap((call, index) => {
      const answer = answers[index] ?? assert.fail()
      const { status, error } = expectedOf(knocker, call)
      const isRight = answer.status === status && (error === null || JSON.parse(answer.text).error === error)
      return isRight ? [] : [`${call.about}: ${answer.status} ${answer.text}, not ${status} ${error}`]
    })
    .slice(0, 10)
}

/** The use of keys is noted after an answer; that is no act of theirs. */
const allRows = await watchRows(database, { except: ['control.api_key_stats', 'control.denials'] })

describe('the tables', () => {
  test('speak of every operation that there is, and of no other', () => {
    const ids = customerOperations.map(({ id }) => id)
    assert.deepEqual(Object.keys(allowedRoles).toSorted(), ids.toSorted())
    assert.deepEqual(Object.keys(neededScopes).toSorted(), ids.toSorted())
  })

  test('leave members and keys to people', () => {
    const scoped = Object.entries(neededScopes).filter(([id]) =>
      /^(projects|members|api-keys|invitations)\./.test(id),
    )
    assert.deepEqual(new Set(scoped.map(([, scope]) => scope)), new Set([null]))
  })
})

describe('everybody who knocks is answered as the tables say', () => {
  for (const knocker of cast) {
    test(knocker.who, async () => {
      const questions = calls.filter((call) => !isAct(knocker, call))
      const asked = sampleOf(questions, 8, ({ route }) => `${route.method} ${route.url}`)
      assert.deepEqual(faultsOf(knocker, asked, await sendAs(knocker, asked)), [])
      await allRows.assertUntouched('asking has changed something')
    })
  }
})

describe('whoever may change something can', () => {
  const actors = cast.filter(({ role, scopes, isForeign }) => (role || scopes) && !isForeign)
  for (const knocker of actors) {
    const acts = customerRoutes.filter(({ operation, method, project, url }) => {
      const call = {
        route: { operation, method, project, url },
        project: 'found',
        item: 'found',
      } as CustomerCall
      // These are of a project or an invitation of their own, each with its own test.
      const isSingular = ['projects.delete', 'invitations.accept'].includes(operation.id)
      return !isSingular && method !== 'GET' && expectedOf(knocker, call).error === null
    })
    if (acts.length === 0) continue
    test(`${knocker.who}: ${acts.length} acts`, async () => {
      for (const route of acts) {
        const noun = itemNoun(route.url)
        const id = noun === undefined ? 0 : await world.makeOne[noun]?.(project.id)
        const path = pathOf(route.url, { project_id: project.id, id: id ?? 0, address: world.suppressed })
        const [answer] = await sendAs(knocker, [{ method: route.method, path, ...bodyOf(route, world) }])
        combinations++
        await suppress()
        const isManager = knocker.role === 'owner' || knocker.role === 'admin'
        // Everybody may leave; whoever is not a manager may remove nobody else.
        const expected =
          route.operation.id === 'members.delete' && !isManager ? 403 : successOf(route.operation)
        assert.equal(answer?.status, expected, `${route.operation.id}: ${answer?.text}`)
      }
    })
  }
})

describe("another's project", () => {
  const strangers = ['a user without a project', 'a removed member', 'somebody invited who has not joined']
  const inPath = customerRoutes.filter(({ project }) => project === 'in path')

  for (const who of [...strangers, 'an administrator who is no member', 'a key of another project']) {
    test(`cannot be told from one that never was: ${who}`, async () => {
      const knocker = named(cast, who)
      for (const route of inPath) {
        const noun = itemNoun(route.url)
        const id = noun === undefined ? 0 : ((await world.makeOne[noun]?.(project.id)) ?? 0)
        const ask = async (project_id: number, id: number | string) => {
          const path = pathOf(route.url, { project_id, id, address: world.suppressed })
          const [answer] = await sendAs(knocker, [{ method: route.method, path, ...bodyOf(route, world) }])
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

  test('is to the byte what is left of one that was deleted', async () => {
    const { owner, project: shortLived } = await people.ownProject({ plan_id: plan.id })
    const knocker = named(cast, 'a user without a project')
    const requests = inPath.map((route) => ({
      method: route.method,
      path: pathOf(route.url, {
        project_id: shortLived.id,
        id: itemNoun(route.url) === 'messages' ? neverSent : 1,
        address: world.suppressed,
      }),
      ...bodyOf(route, world),
    }))
    const before = await sendAs(knocker, requests)
    assert.equal((await owner.delete(`/projects/${shortLived.id}`)).status, 204)
    assert.deepEqual(await sendAs(knocker, requests), before)
    combinations += 2 * requests.length
  })
})

describe("what another project has, under one's own", () => {
  for (const route of customerRoutes.filter(({ url }) => itemNoun(url) !== undefined)) {
    test(`cannot be told from what is gone or never was: ${route.method} ${route.url}`, async () => {
      const noun = itemNoun(route.url) ?? ''
      const id = (await world.makeOne[noun]?.(otherProject.id)) ?? assert.fail()
      // Members have another path than keys; who comes last sees it gone.
      const callers = route.project === 'of key' ? [] : ['the owner']
      for (const [place, who] of ['a key of every scope', ...callers].entries()) {
        const isLast = place === callers.length
        const knocker = named(cast, who)
        const ask = async (id: number | string) => {
          const path = pathOf(route.url, { project_id: project.id, id })
          const [answer] = await sendAs(knocker, [{ method: route.method, path, ...bodyOf(route, world) }])
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
        else {
          const path = `/projects/${otherProject.id}/${noun}/${id}`
          assert.equal((await admin.delete(path, { reason: 'Not needed' })).status, 204)
        }
        assert.deepEqual(await ask(id), foreign)
      }
    })
  }
})

test('every caller met every route', (t) => {
  assert.ok(combinations > customerRoutes.length * (cast.length - 5))
  t.diagnostic(
    `${combinations} combinations: ${cast.length} callers, ${customerRoutes.length} routes, ${calls.length} requests`,
  )
})
