import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pathOf } from '../../testing/expectations/admin-calls.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { mutationScenarios, reason } from '../../testing/expectations/mutations.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { neededQuery, withQuery } from '../../testing/expectations/queries.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import {
  apiKeyConfiguration,
  endpointConfiguration,
  fixtures,
  routeConfiguration,
} from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import type { Answer } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { isMutation, type Mutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/** The conventions of all operations: statuses, headers, strictness, versions, lists. */
const database = await testDatabase()
const api = await startApi(database)
const { admin, ownProject } = await customers(api, database)
const {
  makeUser,
  makePlan,
  makeProject,
  makeMember,
  makeEndpoint,
  makeDomain,
  makeRoute,
  makeApiKey,
  makeIntervention,
  makeBulk,
  makeDiscard,
  makeNote,
  makeEvidence,
  makeFiring,
} = fixtures(database, admin)
const { makeMail, makeEvent, makeAttempt } = mailRows(database)
const scenarios = mutationScenarios(database, admin)
const mutations = adminOperations.filter(isMutation)
const queries = adminOperations.flatMap((operation) => (isMutation(operation) ? [] : [operation]))

const scenarioOf = ({ id }: Mutation) => scenarios[id]?.[0] ?? assert.fail(`there is no scenario for ${id}`)

const send = (operation: Mutation, path: string, body: unknown): Promise<Answer> =>
  admin.request(methodOf(operation), path, body)

/** Asserts that the request is rejected and nothing is written except the denial. */
async function assertInert(
  ask: () => Promise<Answer>,
  status: number,
  error: 'validation_failed' | 'invalid_parameter',
) {
  const rows = await watchRows(database, { except: ['control.denials'] })
  const answer = await ask()
  assertProblem(answer, status, error)
  await rows.assertUntouched()
  return answer
}

describe('a successful response', () => {
  const statuses = { create: 201, edit: 200, rotate: 200, command: 200, enqueue: 202, delete: 204 }
  for (const operation of mutations) {
    test(`of ${operation.id} is ${statuses[operation.kind]}, with the version and the Location`, async () => {
      const { path, body } = await scenarioOf(operation).prepare()
      const answer = await send(operation, path, { ...body, reason })
      assert.equal(answer.status, statuses[operation.kind], answer.text)
      const etag = answer.headers.get('etag')
      const location = answer.headers.get('location')
      if (operation.kind === 'delete') {
        assert.deepEqual([answer.text, etag, location], ['', null, null])
        return
      }
      assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
      if (operation.hasVersion === false) return assert.equal(etag, null)
      assert.match(etag ?? '', /^"[1-9]\d*"$/)
      if (operation.kind !== 'create') return
      const made = await admin.get((location ?? '').replace('/v1/admin', ''))
      assert.equal(made.headers.get('etag'), etag)
      assert.deepEqual(made.body, answer.body.resource ?? answer.body)
    })
  }
})

describe('every response', () => {
  test('has a request id, which is also in the log and in the audit row', async () => {
    const { id } = await makePlan()
    const answer = await admin.patch(`/plans/${id}`, { price: 20 }, { 'x-request-id': 'mine' })
    const requestId = answer.headers.get('x-request-id') ?? ''
    assert.match(requestId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal((await auditRowOf(database, answer))?.operation, 'plans.edit')
    const lines = api.logLines.filter((line) => line.includes(requestId))
    assert.match(lines.join(''), /"route":"\/v1\/admin\/plans\/:id"/)

    for (const other of [await admin.get('/plans'), await admin.get('/plans/x'), await admin.get('/x')]) {
      assert.match(other.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    }
  })
})

describe('an unknown field', () => {
  for (const operation of mutations) {
    test(`is rejected by ${operation.id}, not ignored`, async () => {
      const { path, body } = await scenarioOf(operation).prepare()
      for (const field of ['surprise', 'Reason', 'version', 'project_id']) {
        const ask = () => send(operation, path, { ...body, reason, [field]: 1 })
        const { body: problem } = await assertInert(ask, 422, 'validation_failed')
        assert.match(problem.message, new RegExp(`"${field}"`))
      }
    })
  }
})

describe('an unknown query parameter', () => {
  for (const operation of mutations) {
    test(`is rejected by ${operation.id}: a mistyped dry_run never performs the mutation`, async () => {
      const { path, body } = await scenarioOf(operation).prepare()
      for (const query of [
        'dryrun=true',
        'dry-run=true',
        'DRY_RUN=true',
        'dry_run=true&x',
        'dry_run=1',
        'dry_run',
      ]) {
        await assertInert(
          () => send(operation, `${path}?${query}`, { ...body, reason }),
          400,
          'invalid_parameter',
        )
      }
    })
  }

  for (const operation of queries) {
    test(`is rejected by ${operation.id}`, async () => {
      const path = operation.path.replace('/admin', '').replaceAll(/:\w+/g, '1')
      for (const query of ['x=1', 'dry_run=true', 'Limit=1']) {
        const answer = await admin.request(methodOf(operation), `${path}?${query}`, operation.body?.example)
        assertProblem(answer, 400, 'invalid_parameter')
      }
    })
  }
})

describe('types', () => {
  const wrong: [
    noun: 'projects' | 'plans' | 'endpoints' | 'routing' | 'api-keys' | 'members' | 'users',
    field: string,
    values: unknown[],
  ][] = [
    ['projects', 'name', [1, null, true, ['Acme'], {}]],
    ['projects', 'user_id', ['1', null, 1.5, -1, true]],
    ['projects', 'plan_id', ['1', null, 1.5, -1]],
    ['projects', 'admin_plan_id', ['1', '', false, -1]],
    ['projects', 'reputation_score', ['50', null, 50.5, -1, 101]],
    ['projects', 'is_locked', ['true', 1, 0, null]],
    ['projects', 'allow_service_mta', ['true', 1, null]],
    ['projects', 'admin_subscription_status', ['', 'Active', 'expired', 1]],
    ['plans', 'name', [1, null]],
    ['plans', 'description', [1, null]],
    ['plans', 'support_level', ['gold', 'Email', null]],
    ['plans', 'price', ['10', null, -0.01, 0.001, 1e11]],
    ['plans', 'is_active', ['false', 0, null]],
    ['plans', 'billing_product_id', [1, '', false]],
    [
      'endpoints',
      'events',
      ['message.sent', null, [1], ['message.unknown'], ['message.sent', 'message.sent']],
    ],
    ['endpoints', 'is_active', ['true', 1, null]],
    ['endpoints', 'url', [null, 1, 'http://hooks.example.com/']],
    ['routing', 'domain_id', ['1', null, 1.5, -1]],
    ['routing', 'match', ['prefix', 'Address', null]],
    ['routing', 'address', [1, false, ['a@example.com'], 'a@example.com']],
    ['routing', 'action', ['bounce', 'Reject', null]],
    ['routing', 'endpoint_id', ['1', '', false, -1, 1]],
    ['routing', 'forward_to', [1, '', false, 'a@example.com']],
    ['routing', 'is_active', ['true', 1, null]],
    ['api-keys', 'name', [1, null]],
    ['api-keys', 'scopes', ['messages:send', null, [], [1], ['messages.send'], ['usage:read', 'usage:read']]],
    ['api-keys', 'domain_id', ['1', '', false, -1, 1.5]],
    ['api-keys', 'allowed_ips', ['192.0.2.1', null, [1], [''], ['192.0.2.1/24'], ['example.com']]],
    ['api-keys', 'expires_at', [1, '', '2099-01-01', '2099-01-01T00:00:00', '2099-02-30T00:00:00Z']],
    ['api-keys', 'is_active', ['true', 1, null]],
    ['members', 'role', ['owner', 'Admin', null, ['admin'], 1]],
    ['users', 'role', ['owner', null, true]],
    ['users', 'is_active', ['false', 0, null]],
    ['users', 'end_sessions', ['true', 1, null]],
  ]
  for (const [noun, field, values] of wrong) {
    test(`are not coerced: "${field}" of ${noun} is unchanged after each wrong value`, async () => {
      const { id } = await makeProject()
      const { resource } = await makeEndpoint(id)
      const route = await makeRoute(id)
      const { resource: key } = await makeApiKey(id)
      const edits = {
        projects: [`/projects/${id}`, {}],
        plans: [`/plans/${(await makePlan()).id}`, {}],
        endpoints: [`/projects/${id}/endpoints/${resource.id}`, endpointConfiguration],
        routing: [
          `/projects/${id}/routing/${route.id}`,
          { ...routeConfiguration, domain_id: route.domain_id },
        ],
        'api-keys': [`/projects/${id}/api-keys/${key.id}`, apiKeyConfiguration],
        members: [`/projects/${id}/members/${(await makeMember(id)).id}`, {}],
        users: [`/users/${(await makeUser()).id}`, {}],
      } as const
      const [path, rest] = edits[noun]
      for (const value of values) {
        const ask = () => admin.patch(path, { ...rest, [field]: value, reason })
        const { body } = await assertInert(ask, 422, 'validation_failed')
        assert.match(body.message, new RegExp(`"${field}`), JSON.stringify(value))
      }
    })
  }

  for (const body of [[], [{}], 'name', 1, null, true]) {
    test(`of a body: ${JSON.stringify(body)} is not an object`, async () => {
      const { id } = await makePlan()
      await assertInert(() => admin.patch(`/plans/${id}`, body), 422, 'validation_failed')
    })
  }
})

describe('an edit that changes nothing', () => {
  // Suppressions are added, not edited; they have tests of their own.
  const edited = mutations.filter(({ id }) => !/^(platform-)?suppressions\./.test(id))
  const harmless = edited.flatMap((operation) =>
    (scenarios[operation.id] ?? [])
      .filter(({ changesNothing }) => changesNothing)
      .map((scenario) => ({ operation, scenario })),
  )

  test('is tested on every edit operation', () => {
    // A domain edit always has an effect: see specification-domains.test.ts. These commands edit a resource without a
    // version.
    const commands = [
      'queue.hold',
      'queue.release',
      'discards.stop',
      'discards.resume',
      'bulk.stop',
      'bulk.resume',
    ]
    const edits = mutations
      .filter(({ id, kind }) => (kind === 'edit' && id !== 'domains.edit') || commands.includes(id))
      .map(({ id }) => id)
    assert.deepEqual([...new Set(harmless.map(({ operation }) => operation.id))].sort(), edits.sort())
  })

  for (const { operation, scenario } of harmless) {
    test(`by ${operation.id} returns 200, keeps the version and writes nothing`, async () => {
      const { path, body } = await scenario.prepare()
      const shownAt = path.replace(/\/(billing|hold|release|stop|resume)$/, '')
      const shown = await admin.get(shownAt)
      const rows = await watchRows(database)
      const answer = await send(operation, path, { ...body, reason })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, shown.body)
      assert.equal(answer.headers.get('etag'), shown.headers.get('etag'))
      await rows.assertUntouched()
    })
  }

  test('is also an edit with an empty body, if every field is optional', async () => {
    const { id, plan_id } = await makeProject()
    for (const path of [`/projects/${id}`, `/plans/${plan_id}`]) {
      const rows = await watchRows(database)
      assert.equal((await admin.patch(path, {})).status, 200)
      await rows.assertUntouched()
    }
  })
})

describe('a version', () => {
  test('changes with the configuration, together with updated_at', async () => {
    const { id, updated_at } = await makeProject()
    await database.query(
      `update control.projects set updated_at = updated_at - interval '1 day' where id = $1`,
      [id],
    )
    const etags = []
    for (const name of ['One', 'Two', 'Three']) {
      const answer = await admin.patch(`/projects/${id}`, { name })
      assert.ok(answer.body.updated_at >= updated_at)
      etags.push(answer.headers.get('etag'))
    }
    assert.deepEqual(etags, ['"2"', '"3"', '"4"'])
  })

  test('does not change with counters, a computed score or deliveries, and neither does updated_at', async () => {
    const project = await makeProject()
    const { resource } = await makeEndpoint(project.id)
    await database.query(
      'update control.project_stats set bounced = 7, failed = 8, complained = 9, computed_score = 10 where project_id = $1',
      [project.id],
    )
    await database.query(
      'insert into control.endpoint_stats (endpoint_id, project_id, last_success_at) values ($1, $2, now())',
      [resource.id, project.id],
    )
    const shown = await admin.get(`/projects/${project.id}`)
    assert.deepEqual([shown.headers.get('etag'), shown.body.updated_at], ['"1"', project.updated_at])
    assert.equal(shown.body.reputation_score, 10)
    const endpoint = await admin.get(`/projects/${project.id}/endpoints/${resource.id}`)
    assert.deepEqual([endpoint.headers.get('etag'), endpoint.body.updated_at], ['"1"', resource.updated_at])
    assert.notEqual(endpoint.body.last_success_at, null)
  })
})

describe('a list', () => {
  const lists = queries.filter(({ query }) => 'limit' in query)

  test('exists for every collection', () => {
    const ids: string[] = lists.map(({ id }) => id)
    for (const noun of [
      'projects',
      'members',
      'domains',
      'endpoints',
      'routing',
      'api-keys',
      'messages',
      'suppressions',
      'platform-suppressions',
      'notes',
      'plans',
      'policies',
      'firings',
      'bulk',
      'users',
    ])
      assert.ok(ids.includes(`${noun}.list`))
  })

  test('returns each resource once in pages of five', async () => {
    const { owner, project } = await ownProject()
    const { id, plan_id } = project
    const { resource: tried } = await makeEndpoint(id)
    for (let made = 0; made < 7; made++) {
      await makeMember(id)
      await makeEndpoint(id)
      await makeAttempt(id, tried.id, await makeEvent(id))
      await makeDomain(id)
      await makeRoute(id)
      await makeApiKey(id)
      await makeIntervention(id)
      await makeDiscard(id)
      await makeNote(id)
      await makeBulk(id)
      await makeEvidence(id)
      await makeFiring(id)
      await makeProject({ plan_id })
      await makeMail(id)
      await makeMail(id, { address: 'someone@example.net' })
      await admin.post('/trace', { text: 'someone@example.net' })
      await owner.patch(`/projects/${id}`, { name: `Name ${made}` })
      await database.query(
        `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'manual')`,
        [id, `person${made}@example.net`],
      )
      await database.query(
        `insert into control.platform_suppressions (address, reason) values ($1, 'Needed')`,
        [`person${made}@example.net`],
      )
    }
    for (const list of lists) {
      const { path } = list
      const at = pathOf(path.replace('/admin', ''), { project_id: id, id: tried.id }) + neededQuery(list)
      const page = (query: string) => admin.get(withQuery(at, query))
      const { body: whole } = await page('limit=200')
      assert.deepEqual(Object.keys(whole).slice(0, 2), ['data', 'next_cursor'])
      const seen: { id?: number | string; address?: string }[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { body }: Answer = await page(`limit=5${cursor && `&cursor=${cursor}`}`)
        if (body.next_cursor !== null) assert.equal(body.data.length, 5, path)
        assert.ok(body.data.length <= 5, path)
        seen.push(...body.data)
        cursor = body.next_cursor
      }
      assert.equal(new Set(seen.map(({ id, address }) => id ?? address)).size, seen.length, path)
      assert.deepEqual(seen.slice(0, 200), whole.data, path)
      assert.equal(whole.next_cursor === null, seen.length <= 200, path)
      assert.ok(seen.length > 5, path)
    }
  })

  test('returns fifty resources by default', async () => {
    await Promise.all(Array.from({ length: 51 }, () => makePlan()))
    const { body } = await admin.get('/plans')
    assert.equal(body.data.length, 50)
    assert.notEqual(body.next_cursor, null)
  })

  test('rejects a limit below 1 or above 200, and an invalid cursor', async () => {
    const { id } = await makeProject()
    const { resource: tried } = await makeEndpoint(id)
    for (const list of lists) {
      const path = pathOf(list.path.replace('/admin', ''), { project_id: id, id: tried.id })
      const at = path + neededQuery(list)
      for (const query of [
        'limit=0',
        'limit=201',
        'limit=1e1',
        'limit=',
        'limit=1&limit=2',
        'cursor=',
        'cursor=1',
      ]) {
        assertProblem(await admin.get(withQuery(at, query)), 400, 'invalid_parameter')
      }
    }
  })
})
