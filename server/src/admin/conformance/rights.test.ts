import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Rights } from '../../core/control/users/wire.ts'
import { badBodies, bodyOf, hasHead, pathOf } from '../../testing/expectations/admin-calls.ts'
import { expectedAdminOperations } from '../../testing/expectations/admin-operations.ts'
import { expectedProjectFields, expectedRights } from '../../testing/expectations/admin-rights.ts'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { neverExisted, neverSent } from '../../testing/expectations/path-targets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { neededQuery, withQuery } from '../../testing/expectations/queries.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'
import { exchange, type Received, type Sent } from '../../testing/harness/raw-http.ts'
import { allowedRights } from '../rights.ts'
import { adminOperations } from '../routes.ts'

/** Every administrative route, called by administrators with each of the rights. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const clients = {
  support: await signedIn(api, 'support'),
  billing: await signedIn(api, 'billing'),
  auditor: await signedIn(api, 'auditor'),
}
const limited = Object.keys(clients) as (keyof typeof clients)[]
const make = fixtures(database, admin)
const plan = await make.makePlan()
const project = await make.makeProject({ plan_id: plan.id })
const intervention = await make.makeIntervention(project.id, { kind: 'pace', pace_per_hour: 1 })
const address = 'gone@example.net'
await database.query(
  `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'complaint')`,
  [project.id, address],
)
const reason = 'Asked for by the customer'

const sendAll = (rights: Rights, requests: readonly Sent[]): Promise<Received[]> => {
  const { headers } = rights === 'full' ? admin : clients[rights]
  return exchange(
    api.url,
    requests.map((sent) => ({ ...sent, headers: { ...sent.headers, ...headers } })),
  )
}

const sendAs = async (rights: Rights, sent: Sent): Promise<Received> => {
  const [answer] = await sendAll(rights, [sent])
  return answer ?? assert.fail()
}

const errorOf = ({ text }: Received): string | undefined => (text === '' ? undefined : JSON.parse(text).error)

/** A request that changes nothing: a mutation is sent as a dry run. */
function requestTo(id: string, params: Record<string, string | number>, field?: keyof typeof values): Sent {
  const [method = '', url = ''] = expectedAdminOperations[id]?.route.split(' ') ?? []
  const operation = adminOperations.find((one) => one.id === id)
  const isRead = method === 'GET' || expectedAdminOperations[id]?.isRead
  const path = withQuery(pathOf(url, params) + neededQuery(operation), isRead ? '' : 'dry_run=true')
  const content = field
    ? { ...bodyOf(method, url), body: JSON.stringify({ [field]: values[field], reason }) }
    : bodyOf(method, url)
  return { method, path, ...content }
}

const absent = (id: string) => (/^(messages|bulk|delivery-attempts)\./.test(id) ? neverSent : neverExisted)
const targets = (id: string) => [
  // Only interventions have an item that exists: the others are 404, if the rights suffice.
  { project_id: project.id, id: id.startsWith('interventions.') ? intervention.id : absent(id), address },
  { project_id: neverExisted, id: absent(id), address },
]

/** A field that the rights can change, for the one operation that is limited to fields. */
const fieldFor = (id: string, rights: keyof typeof clients): keyof typeof values | undefined =>
  id === 'projects.edit'
    ? (Object.keys(values) as (keyof typeof values)[]).find((field) =>
        expectedProjectFields[field]?.includes(rights),
      )
    : undefined

const values = {
  name: 'Renamed',
  user_id: project.user_id,
  is_locked: true,
  plan_id: plan.id,
  admin_plan_id: plan.id,
  admin_subscription_status: 'active',
  allow_service_mta: true,
  reputation_score: 50,
}

/** Every operation, for resources that exist and for those that do not. */
const requestsOf = (rights: keyof typeof clients): (Sent & { id: string })[] =>
  Object.keys(expectedRights).flatMap((id) => {
    const isNamed = expectedAdminOperations[id]?.route.includes(':')
    return targets(id)
      .slice(0, isNamed ? undefined : 1)
      .flatMap((params) => {
        const sent = { ...requestTo(id, params, fieldFor(id, rights)), id }
        return hasHead(expectedAdminOperations[id]?.route ?? '')
          ? [sent, { ...sent, method: 'HEAD' }]
          : [sent]
      })
  })

test('the tables list exactly the operations and fields of the API', async () => {
  const ids = Object.keys(expectedAdminOperations).toSorted()
  assert.deepEqual(Object.keys(expectedRights).toSorted(), ids)
  assert.deepEqual(Object.keys(allowedRights).toSorted(), ids)
  const { body } = adminOperations.find(({ id }) => id === 'projects.edit') as { body?: object }
  const fields = Object.keys(body ?? {}).filter((field) => field !== 'expires_at')
  assert.deepEqual(Object.keys(expectedProjectFields).toSorted(), fields.toSorted())
  assert.deepEqual(Object.keys(values).toSorted(), fields.toSorted())
})

test('the OpenAPI document states the rights of every administrative operation', async () => {
  const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Record<string, unknown>>>
  }
  const found = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ operationId, 'x-rights': rights }) => (rights ? [[operationId, rights]] : []))
  const expected = Object.entries(expectedRights).map(([id, rights]) => [id, ['full', ...rights]])
  assert.deepEqual(Object.fromEntries(found), Object.fromEntries(expected))
})

describe('an administrator with limited rights', () => {
  for (const rights of limited) {
    test(`can call exactly the documented operations: ${rights}`, async () => {
      // Some reads are recorded, and evidence is made by a job.
      const except = ['control.denials', 'control.lookups', 'control.evidence', 'jobs.job_common']
      const before = await watchRows(database, { except })
      const requests = requestsOf(rights)
      const [answers, references] = [await sendAll(rights, requests), await sendAll('full', requests)]
      const faults = requests.flatMap(({ id, method, path }, index) => {
        const [answer = assert.fail(), full = assert.fail()] = [answers[index], references[index]]
        const isRight = expectedRights[id]?.includes(rights)
          ? answer.status === full.status && full.status !== 403
          : answer.status === 403 && errorOf(answer) === 'insufficient_rights' && full.status !== 403
        return isRight ? [] : [`${method} ${path}: ${answer.status} ${answer.text}, full: ${full.status}`]
      })
      assert.deepEqual(faults, [])
      await before.assertUntouched()
    })

    test(`is rejected before the body is read: ${rights}`, async () => {
      const sent = requestTo('plans.create', {})
      for (const { headers, body } of badBodies) {
        const answer = await sendAs(rights, { ...sent, headers, body })
        assert.deepEqual([answer.status, errorOf(answer)], [403, 'insufficient_rights'])
      }
    })
  }

  test('gets 404 for an unknown path and 405 for another method, like every administrator', async () => {
    for (const rights of limited) {
      const unknown = await sendAs(rights, { method: 'POST', path: '/v1/admin/nothing' })
      assert.deepEqual([unknown.status, errorOf(unknown)], [404, 'not_found'])
      const unsupported = await sendAs(rights, { method: 'PUT', path: '/v1/admin/plans' })
      assert.deepEqual([unsupported.status, errorOf(unsupported)], [405, 'method_not_allowed'])
    }
  })

  test('learns which rights are required, and whom to ask', async () => {
    const created = await clients.auditor.post('/plans', {})
    assertProblem(created, 403, 'insufficient_rights')
    assert.equal(
      created.body.message,
      'This requires full rights. You have auditor rights. Ask an administrator with full rights.',
    )
    const edited = await clients.support.patch(`/projects/${project.id}`, { is_locked: true, plan_id: 1 })
    assert.equal(
      edited.body.message,
      'Changing "plan_id" requires full or billing rights. You have support rights. Ask an administrator with full rights.',
    )
  })
})

describe('projects.edit with limited rights', () => {
  const path = `/projects/${project.id}`
  const edit = (rights: keyof typeof clients, body: object, query = '') =>
    clients[rights].patch(`${path}${query}`, { ...body, reason })

  for (const [field, allowed] of Object.entries(expectedProjectFields)) {
    for (const rights of limited) {
      const isAllowed = allowed.includes(rights)
      test(`${isAllowed ? 'changes' : 'does not change'} ${field}: ${rights}`, async () => {
        const change = { [field]: values[field as keyof typeof values] }
        for (const query of ['?dry_run=true', '']) {
          const answer = await edit(rights, change, query)
          if (isAllowed) assert.equal(answer.status, 200, answer.text)
          else assertProblem(answer, 403, 'insufficient_rights')
        }
      })
    }
  }

  test('is rejected as a whole if one field is not allowed', async () => {
    const before = (await admin.get(path)).body
    for (const [rights, body] of [
      ['support', { is_locked: !before.is_locked, name: 'Mine' }],
      ['billing', { plan_id: plan.id, reputation_score: 100 }],
      ['billing', { admin_plan_id: null, is_locked: !before.is_locked }],
    ] as const) {
      assertProblem(await edit(rights, body), 403, 'insufficient_rights')
    }
    assert.deepEqual((await admin.get(path)).body, before)
  })

  test('accepts an expiry with the fields that are allowed', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const { id } = await make.makeProject({ plan_id: plan.id })
    const sent = { expires_at, reason }
    const locked = await clients.support.patch(`/projects/${id}`, { is_locked: true, ...sent })
    assert.deepEqual([locked.status, locked.body.is_locked], [200, true])
    const plans = await clients.billing.patch(`/projects/${id}`, { admin_plan_id: plan.id, ...sent })
    assert.deepEqual([plans.status, plans.body.admin_plan_id], [200, plan.id])
  })

  test('is rejected before the project is read, and before its parameters are validated', async () => {
    for (const target of [neverExisted, 'first']) {
      const answer = await clients.support.patch(`/projects/${target}`, { name: 'Mine' })
      assertProblem(answer, 403, 'insufficient_rights')
    }
  })
})

describe('the work of support', () => {
  test('starts, edits and ends interventions of every kind, with the person in the audit log', async () => {
    const { id } = await make.makeProject({ plan_id: plan.id })
    const path = `/projects/${id}/interventions`
    for (const kind of ['warn', 'pace', 'hold', 'lock']) {
      const details = { pace_per_hour: kind === 'pace' ? 100 : null, public_note: null, expires_at: null }
      const started = await clients.support.post(path, { kind, ...details, reason })
      assert.equal(started.status, 201, started.text)
      const edited = await clients.support.patch(`${path}/${started.body.id}`, {
        ...{ ...details, public_note: 'Please reply', reason },
      })
      assert.equal(edited.status, 200, edited.text)
      const ended = await clients.support.post(`${path}/${started.body.id}/end`, { reason })
      assert.equal(ended.status, 200, ended.text)
      assert.equal((await auditRowOf(database, ended))?.actor_id, clients.support.userId)
    }
  })

  test('holds and releases the queue, and removes a suppression', async () => {
    const path = `/projects/${project.id}`
    assert.equal((await clients.support.post(`${path}/queue/hold`, { reason })).status, 200)
    assert.equal((await clients.support.post(`${path}/queue/release`, { reason })).status, 200)
    const removed = await clients.support.delete(`${path}/suppressions/${address}`, { reason })
    assert.equal(removed.status, 202, removed.text)
  })
})

test('billing sets the billing state', async () => {
  const { id } = await make.makeProject({ plan_id: plan.id })
  const answer = await clients.billing.put(`/projects/${id}/billing`, {
    ...{ billing_subscription_id: 'sub_1', billing_subscription_status: 'active' },
    billing_product_id: null,
  })
  assert.deepEqual([answer.status, answer.body.billing_subscription_id], [200, 'sub_1'])
})
