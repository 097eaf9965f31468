import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Access, accessTable } from '../../testing/expectations/access-table.ts'
import {
  badBodies,
  bodyOf,
  type Call,
  callsOf,
  callsToNowhere,
  hasHead,
  json,
  pathOf,
  suppressedAddress,
} from '../../testing/expectations/admin-calls.ts'
import { neverExisted, neverSent, planeSpellings } from '../../testing/expectations/path-targets.ts'
import { type AdminActor, administrators, strangers } from '../../testing/fixtures/admin-actors.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { makeForgedTokenContext } from '../../testing/fixtures/forged-token-context.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { Client } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { exchange, type Received, type Sent } from '../../testing/harness/raw-http.ts'
import { sampleOf } from '../../testing/harness/sample.ts'
import { watchRoutes } from '../../testing/harness/watch-routes.ts'
import { startIssuer } from '../../testing/peers/issuer.ts'

/**
 * The access matrix: every route of the running API, called by every kind of caller, with every kind of target. The
 * test fails for a route that is missing from the table.
 */
const issuers = { external: await startIssuer(), stranger: await startIssuer() }
const database = await testDatabase()
const [api, routes] = await watchRoutes(() =>
  startApi(
    database,
    { POSTERN_OIDC_ISSUERS: JSON.stringify([issuers.external.configuration]) },
    { webFolder: '/nowhere' },
  ),
)

const credentials = await api.makeAdmin()
const admin = new Client(api.url, await api.tokenOf(credentials.email))
const make = fixtures(database, admin)
const mail = mailRows(database)
const plan = await make.makePlan()
const project = await make.makeProject({ plan_id: plan.id })
const otherProject = await make.makeProject({ plan_id: plan.id })
const scene = await makeForgedTokenContext(api, database, credentials, issuers)
const cast = { api, database, admin, email: credentials.email, context: scene, make, project }
const insiders = await administrators(cast)
const outsiders = await strangers(cast)

const domains = new Map([
  [project.id, await make.makeDomain(project.id)],
  [otherProject.id, await make.makeDomain(otherProject.id)],
])
await database.query(
  `insert into mail.suppressions (project_id, address, reason) select id, $2, 'complaint' from unnest($1::bigint[]) as id`,
  [[project.id, otherProject.id], suppressedAddress],
)
await database.query(`insert into control.platform_suppressions (address, reason) values ($1, 'Needed')`, [
  suppressedAddress,
])
const table = accessTable({ project, plan, domains })

/**
 * One resource of each kind, in a project if the kind belongs to projects. The key is the path segment before
 * `:id`.
 */
const makeOne: Record<string, (projectId: number) => Promise<number | string>> = {
  members: async (projectId) => (await make.makeMember(projectId)).id,
  domains: async (projectId) => (await make.makeDomain(projectId, { mta_provider: 'service' })).id,
  endpoints: async (projectId) => (await make.makeEndpoint(projectId)).resource.id,
  routing: async (projectId) => (await make.makeRoute(projectId)).id,
  'api-keys': async (projectId) => (await make.makeApiKey(projectId)).resource.id,
  interventions: async (projectId) =>
    (await make.makeIntervention(projectId, { kind: 'pace', pace_per_hour: 1 })).id,
  discards: async (projectId) => (await make.makeDiscard(projectId)).id,
  evidence: async (projectId) => (await make.makeEvidence(projectId)).id,
  reversals: async (projectId) => (await make.makeReversal(projectId)).id,
  notes: async (projectId) => (await make.makeNote(projectId)).id,
  'delivery-attempts': async (projectId) => mail.makeAttempt(projectId, 1, await mail.makeEvent(projectId)),
  messages: async (projectId) => (await mail.makeMail(projectId, { sendIn: '1 day' })).messageId,
  plans: async () => (await make.makePlan()).id,
  policies: async () => (await make.makePolicy()).id,
  bulk: async (projectId) => (await make.makeBulk(projectId)).id,
  users: async () => (await make.makeUser()).id,
  audit: async () => {
    await admin.patch(`/plans/${(await make.makePlan()).id}`, { price: 0.07 })
    return (await admin.get('/audit?operation=plans.edit&limit=1')).body.data[0].id
  },
}

async function removeOne(projectId: number, noun: string, id: number | string): Promise<void> {
  // Messages are deleted only by retention.
  if (noun === 'messages') return mail.dropMail(projectId, String(id))
  if (noun === 'delivery-attempts') {
    await database.query('delete from mail.delivery_attempts where id = $1', [id])
    return
  }
  // No operation deletes these.
  if (['interventions', 'discards', 'evidence'].includes(noun)) {
    await database.query(`delete from control.${noun} where id = $1`, [id])
    return
  }
  const deleted = await admin.delete(`/projects/${projectId}/${noun}/${id}`, { reason: 'Not needed' })
  assert.equal(deleted.status, 204, deleted.text)
}

const calls = callsToNowhere(routes)
const operations = Object.entries(table).filter(
  ([route, { caller }]) => caller === 'administrator' && !route.startsWith('ANY'),
)
for (const [route, access] of operations) {
  calls.push(...(await callsOf(route, access, { project, otherProject, makeOne })))
}
const mutations = calls.filter(({ isGood, body }) => isGood && body !== undefined)

const sendAs = ({ headers }: AdminActor, requests: readonly Sent[]): Promise<Received[]> =>
  exchange(
    api.url,
    requests.map((sent) => ({ ...sent, headers: { ...sent.headers, ...headers } })),
  )

/** Compared byte by byte. A HEAD response has no body. */
const isSame = (answer: Received, { method }: Sent, reference: Received): boolean =>
  answer.head === reference.head && answer.text === (method === 'HEAD' ? '' : reference.text)

const problemOf = ({ text }: Received): { error: string; message: string } => JSON.parse(text)

/** The failures, limited to a readable number. */
function faultsOf(
  sent: readonly Call[],
  answers: readonly Received[],
  isRight: (answer: Received, call: Call) => boolean,
) {
  return sent
    .flatMap((call, index) => {
      const answer = answers[index] ?? assert.fail()
      return isRight(answer, call) ? [] : [`${call.about}: ${answer.status} ${answer.text}`]
    })
    .slice(0, 10)
}

const outsider = (who: string): AdminActor =>
  outsiders.find((one) => one.who === who) ?? assert.fail(`nobody is called ${who}`)

const shell = insiders[0] ?? assert.fail()
const nobody = outsider('no Authorization header')
const nowhere = { method: 'GET', path: '/v1/admin/anything' }

/** The expected response to a caller without access. */
async function refusalOf(identity: AdminActor): Promise<Received> {
  const [refusal] = await sendAs(identity, [nowhere])
  return refusal ?? assert.fail()
}

/** Every table except the one that counts denials. */
const watchAll = () => watchRows(database, { except: ['control.denials'] })
const allRows = await watchAll()
const assertNothingWritten = () => allRows.assertUntouched()
/** Every route, called by each caller with a different sample of targets. */
const sampleOfCalls = () =>
  sampleOf(calls, 8, ({ about, isToNowhere }) => (isToNowhere ? 'nowhere' : about.split(' ', 2).join(' ')))
let combinations = 0

test('the table lists exactly the routes of the API', () => {
  const expected = Object.keys(table).flatMap((route) =>
    hasHead(route) ? [route, route.replace('GET', 'HEAD')] : [route],
  )
  assert.deepEqual(routes.toSorted(), expected.toSorted())
})

describe('a caller who is not an administrator', () => {
  const refusals: Received[] = []
  const askedBy = new Map<string, number>()

  for (const identity of outsiders) {
    const { who, status, error } = identity
    test(`gets the same response everywhere: ${who}`, async () => {
      const refusal = await refusalOf(identity)
      refusals.push(refusal)
      assert.deepEqual([refusal.status, problemOf(refusal).error], [status, error])
      assert.deepEqual(Object.keys(problemOf(refusal)), ['error', 'message'])
      const asked = sampleOfCalls()
      const answers = await sendAs(identity, asked)
      combinations += asked.length
      if (identity.userId !== undefined) askedBy.set(String(identity.userId), asked.length)
      assert.deepEqual(
        faultsOf(asked, answers, (answer, call) => isSame(answer, call, refusal)),
        [],
      )
    })
  }

  test('learns only the error code, and whether two-factor authentication is missing', () => {
    const answers = new Map<string, Set<string>>()
    for (const { head, text } of refusals) {
      const { error } = JSON.parse(text)
      answers.set(error, (answers.get(error) ?? new Set()).add(head + text))
    }
    const kinds = Object.fromEntries([...answers].map(([error, { size }]) => [error, size]))
    assert.deepEqual(kinds, {
      unauthenticated: 2,
      token_expired: 1,
      admin_required: 1,
      api_key_not_allowed: 1,
    })
  })

  test('is rejected before the body is read', async () => {
    for (const who of ['no Authorization header', 'a viewer of the project', 'a made-up live API key']) {
      const identity = outsider(who)
      const refusal = await refusalOf(identity)
      for (const body of badBodies) {
        const requests = sampleOf(mutations, 4).map((call) => ({ ...call, ...body }))
        const answers = []
        for (const request of requests) answers.push(...(await sendAs(identity, [request])))
        assert.deepEqual(
          faultsOf(requests, answers, (answer, call) => isSame(answer, call, refusal)),
          [],
        )
      }
    }
  })

  test('changes nothing, and only denials of signed-in users are counted', async () => {
    await assertNothingWritten()
    const counted = await database.query<{ actor_id: string; count: number }>(
      'select actor_id, sum(count)::int as count from control.denials group by 1',
    )
    const known = outsiders.flatMap(({ userId }) => (userId === undefined ? [] : [String(userId)]))
    assert.deepEqual(counted.map(({ actor_id }) => actor_id).toSorted(), known.toSorted())
    for (const { actor_id, count } of counted) assert.ok(count >= (askedBy.get(actor_id) ?? assert.fail()))
  })
})

describe('an administrator', () => {
  const isAsTabled = (answer: Received, { method, status, error }: Call): boolean =>
    answer.status === status && (error === null || method === 'HEAD' || problemOf(answer).error === error)
  const assertAsTabled = async (identity: AdminActor, requests: readonly Call[]) => {
    combinations += requests.length
    assert.deepEqual(faultsOf(requests, await sendAs(identity, requests), isAsTabled), [])
  }

  test('gets 404 for missing resources and 400 for invalid identifiers, and changes nothing', async () => {
    await assertAsTabled(
      shell,
      calls.filter(({ error }) => error !== null),
    )
    await assertNothingWritten()
  })

  test('is rejected for an invalid body after authentication', async () => {
    for (const { status, error, headers, body } of badBodies) {
      // The server does not read a larger body to its end, and closes the connection.
      const bad = { headers, body: body.slice(0, 100 * 1024), status, error }
      for (const mutation of mutations) {
        // domains.edit accepts a new address for each of a thousand routes, an import 10,000 addresses, trace.find a whole
        // report, and bulk.create the ids of many projects.
        const isRoomy =
          (mutation.method === 'PATCH' && mutation.path.includes('/domains/')) ||
          mutation.path.endsWith('/suppressions/import') ||
          mutation.path.endsWith('/trace') ||
          mutation.path === '/v1/admin/bulk'
        if (status !== 413 || !isRoomy) await assertAsTabled(shell, [{ ...mutation, ...bad }])
      }
    }
    await assertNothingWritten()
  })

  for (const identity of insiders) {
    test(`can read everything: ${identity.who}`, async () => {
      await assertAsTabled(
        identity,
        calls.filter(({ error, body }) => error === null && body === undefined),
      )
    })
  }

  test('can run every operation', async () => {
    // Sequential, because some requests concern the same project.
    const acts = calls.filter(({ error, body }) => error === null && body !== undefined)
    for (const act of acts) {
      await assertAsTabled(shell, [act])
      // Only one discard can be running in a project, and one bulk action of an administrator.
      await database.query('update control.discards set finished_at = now() where stopped_at is null')
      await database.query('update control.bulk_actions set finished_at = now() where stopped_at is null')
      // A project can have 20 files.
      await database.query(`delete from control.evidence where section <> 'done'`)
    }
  })

  for (const [route, { body }] of operations.filter(([route]) => /:project_id\/.*:id/.test(route))) {
    test(`gets the same response for another project's resource, a deleted one and a missing one: ${route}`, async () => {
      const [method = '', url = ''] = route.split(' ')
      const [, noun = ''] = /([^/]+)\/:id/.exec(url) ?? []
      const id = (await makeOne[noun]?.(otherProject.id)) ?? assert.fail()
      const ask = async (id: number | string): Promise<Received> => {
        const path = pathOf(url, { project_id: project.id, id })
        const changes = typeof body === 'function' ? body(project.id) : body
        const [answer] = await sendAs(shell, [{ method, path, ...bodyOf(method, url, changes) }])
        return answer ?? assert.fail()
      }
      const before = await watchAll()
      const foreign = await ask(id)
      assert.equal(foreign.status, 404)
      await before.assertUntouched()

      const absent = typeof id === 'number' ? neverExisted : neverSent
      const never = await ask(absent)
      assert.equal(never.text.replace(String(absent), String(id)), foreign.text)
      await removeOne(otherProject.id, noun, id)
      assert.deepEqual(await ask(id), foreign)
    })
  }
})

describe('a path on the plane', () => {
  test('in another notation is authenticated or not found, for every caller', async () => {
    for (const path of planeSpellings) {
      const sent = { method: 'GET', path }
      const [refused = assert.fail()] = await sendAs(nobody, [sent])
      const [allowed = assert.fail()] = await sendAs(shell, [sent])
      if (refused.status === 404) assert.deepEqual(refused, allowed, path)
      else assert.ok(isSame(refused, sent, await refusalOf(nobody)), `${path}: ${refused.status}`)
    }
  })

  test('is not found with an unknown method', async () => {
    const requests = ['PROPFIND', 'LOCK', 'PURGE'].flatMap((method) =>
      ['/v1/admin/projects', nowhere.path].map((path) => ({ method, path })),
    )
    const refused = await sendAs(nobody, requests)
    assert.deepEqual(new Set(refused.map(({ status }) => status)), new Set([404]))
    assert.deepEqual(refused, await sendAs(shell, requests))
  })

  test('with an invalid escape sequence reveals nothing to an unauthenticated caller', async () => {
    const requests = ['/projects/%zz', '/projects/%', '/projects/%ff/members', '/%zz', '/%c3%28'].map(
      (path) => ({
        method: 'GET',
        path: `/v1/admin${path}`,
      }),
    )
    for (const [index, answer] of (await sendAs(nobody, requests)).entries()) {
      const { path = '' } = requests[index] ?? {}
      assert.ok(isSame(answer, nowhere, await refusalOf(nobody)), `${path}: ${answer.status} ${answer.text}`)
    }
    const answers = await sendAs(shell, requests)
    assert.deepEqual(
      answers.map(({ status }) => status),
      [400, 400, 400, 404, 404],
    )
  })
})

describe('outside the plane', () => {
  const routesFor = (wanted: Access['caller']): (Sent & { route: string; status: number })[] =>
    Object.entries(table).flatMap(([route, { caller, status, body }]) => {
      const [method = '', url = ''] = route.split(' ')
      const sent = { route, status, method, path: pathOf(url, { id: neverExisted, issuer: 'unknown' }) }
      if (caller !== wanted) return []
      return [body ? { ...sent, headers: json, body: JSON.stringify(body) } : sent]
    })
  const browser = outsiders.find(({ headers }) => headers['cookie'] !== undefined) ?? assert.fail()

  test('session operations do not accept a token', async () => {
    const requests = routesFor('session')
    const refused = await sendAs(nobody, requests)
    assert.deepEqual(new Set(refused.map(({ status }) => status)), new Set([401]))
    for (const identity of [...outsiders, ...insiders].filter((one) => one !== browser)) {
      assert.deepEqual(await sendAs(identity, requests), refused, identity.who)
      combinations += requests.length
    }
  })

  test('session operations accept a session', async () => {
    const requests = routesFor('session')
    const refused = await sendAs(nobody, requests)
    for (const [index, answer] of (await sendAs(browser, requests)).entries()) {
      const { route, status } = requests[index] ?? assert.fail()
      assert.equal(answer.status, status, route)
      assert.notEqual(answer.text, refused[index]?.text, route)
    }
  })

  test('public operations need no authentication', async () => {
    const requests = routesFor('anyone')
    const answers = await sendAs(nobody, requests)
    assert.deepEqual(
      answers.map(({ status }) => status),
      requests.map(({ status }) => status),
    )
    const others = await sendAs(shell, requests)
    const isChallenge = ({ route }: { route: string }) => route.endsWith('/passkey/options')
    assert.equal(requests.filter(isChallenge).length, 1)
    for (const [index, request] of requests.entries()) {
      const [one, other] = [answers[index] ?? assert.fail(), others[index] ?? assert.fail()]
      if (isChallenge(request)) {
        assert.notEqual(one.text, other.text)
        assert.deepEqual(withoutChallenge(other), withoutChallenge(one), request.route)
      } else assert.deepEqual(other, one, request.route)
    }
    combinations += 2 * requests.length
  })

  /** The challenge of a passkey and the cookie that identifies it are random. Everything else must be the same. */
  function withoutChallenge(answer: Received): Received {
    const head = answer.head.replace(/^(set-cookie: [\w.-]+=)[^;]+(?=;)/im, '$1…')
    const text = answer.text.replace(/("challenge":)"[\w-]{43}"/, '$1"…"')
    assert.notEqual(head, answer.head)
    assert.notEqual(text, answer.text)
    return { ...answer, head, text }
  }
})

test('every caller was tested on every route', (t) => {
  assert.ok(combinations > operations.length * outsiders.length)
  t.diagnostic(
    `${combinations} combinations: ${outsiders.length + insiders.length} callers, ${routes.length} routes, ${calls.length} administrative requests`,
  )
})
