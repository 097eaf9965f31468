import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { reason } from '../../testing/expectations/mutations.ts'
import { neverSent } from '../../testing/expectations/path-targets.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { neededQuery } from '../../testing/expectations/queries.ts'
import { endpointConfiguration, fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { isMutation } from '../operation.ts'
import { adminOperations } from '../routes.ts'
import { methodOf } from '../schema.ts'

/** Plan limits, which an administrator can exceed with a reason, and limits on identifiers. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember } = fixtures(database, admin)

const makeProjectFor = async (max_users: number) =>
  makeProject({ plan_id: (await makePlan({ max_users })).id })

let invited = 0
const invite = (projectId: number, extra: object = {}) =>
  admin.post(`/projects/${projectId}/members`, {
    email: `invited${++invited}@example.net`,
    role: 'viewer',
    ...extra,
  })

const countMembers = async (projectId: number): Promise<number> =>
  (await admin.get(`/projects/${projectId}/members?limit=200`)).body.data.length

describe("a plan's limits", () => {
  const limits = ['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const
  for (const limit of limits) {
    test(`${limit} accepts any non-negative integer, and nothing else`, async () => {
      const { id } = await makePlan()
      for (const value of [0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
        assert.equal((await admin.patch(`/plans/${id}`, { [limit]: value })).body[limit], value)
      }
      for (const value of [-1, 0.5, 2 ** 53, 1e300, '10', null, true, []]) {
        assertProblem(await admin.patch(`/plans/${id}`, { [limit]: value }), 422, 'validation_failed')
      }
    })
  }
})

describe('max_users', () => {
  test('allows a create below the limit, and records no exception', async () => {
    const project = await makeProjectFor(3)
    for (const extra of [{}, { reason }]) {
      const answer = await invite(project.id, extra)
      assert.equal(answer.status, 201)
      const row = await auditRowOf(database, answer)
      assert.deepEqual([row?.reason ?? undefined, row?.limit_exception], [extra.reason, null])
    }
  })

  test('rejects a create without a reason, and says that a reason is required', async () => {
    const project = await makeProjectFor(1)
    const answer = await invite(project.id)
    assertProblem(answer, 422, 'limit_exceeded')
    assert.match(answer.body.message, /max_users/)
    assert.match(answer.body.message, /"reason"/)
    assert.equal(await auditRowOf(database, answer), undefined)
    assert.equal(await countMembers(project.id), 1)
  })

  test('can be exceeded with a reason, and the audit row records the limit, its value and the count', async () => {
    const project = await makeProjectFor(1)
    for (const count of [2, 3]) {
      const answer = await invite(project.id, { reason })
      assert.equal(answer.status, 201)
      const row = await auditRowOf(database, answer)
      assert.deepEqual(
        [row?.operation, row?.reason, row?.limit_exception],
        ['members.create', reason, { limit: 'max_users', value: 1, count }],
      )
    }
    assert.equal(await countMembers(project.id), 3)
  })

  test('stays the same after an exception: the plan, the project and the next create are not affected', async () => {
    const project = await makeProjectFor(1)
    assert.equal((await invite(project.id, { reason })).status, 201)
    assert.deepEqual((await admin.get(`/projects/${project.id}`)).body, project)
    assert.deepEqual((await admin.get(`/plans/${project.plan_id}`)).body, project.plan)
    assertProblem(await invite(project.id), 422, 'limit_exceeded')
  })

  test('cannot be exceeded with an empty reason', async () => {
    const project = await makeProjectFor(1)
    assertProblem(await invite(project.id, { reason: '' }), 422, 'validation_failed')
    assertProblem(await invite(project.id, { reason: ' \t ' }), 422, 'validation_failed')
    assert.equal(await countMembers(project.id), 1)
  })

  test('counts members and invitations', async () => {
    const project = await makeProjectFor(3)
    await makeMember(project.id)
    await makeMember(project.id, { email: (await makeUser()).email })
    assertProblem(await invite(project.id), 422, 'limit_exceeded')
  })

  test('allows another member after one is removed', async () => {
    const project = await makeProjectFor(2)
    const { body } = await invite(project.id)
    assertProblem(await invite(project.id), 422, 'limit_exceeded')
    await admin.delete(`/projects/${project.id}/members/${body.id}`, { reason })
    assert.equal((await invite(project.id)).status, 201)
  })

  test('is taken from the current plan: the override, if there is one', async () => {
    const project = await makeProjectFor(1)
    const override = (id: number | null) =>
      admin.patch(`/projects/${project.id}`, { admin_plan_id: id, reason })
    await override((await makePlan({ max_users: 2 })).id)
    assert.equal((await invite(project.id)).status, 201)
    const beyond = await invite(project.id, { reason })
    assert.deepEqual((await auditRowOf(database, beyond))?.limit_exception, {
      limit: 'max_users',
      value: 2,
      count: 3,
    })
    await override(null)
    const answer = await invite(project.id, { reason })
    assert.equal((await auditRowOf(database, answer))?.limit_exception?.value, 1)
  })

  test('does not affect existing members if it is lowered', async () => {
    const project = await makeProjectFor(2)
    const { body } = await invite(project.id)
    assert.equal((await admin.patch(`/plans/${project.plan_id}`, { max_users: 0 })).status, 200)
    assert.equal(await countMembers(project.id), 2)
    const path = `/projects/${project.id}/members/${body.id}`
    assert.equal((await admin.patch(path, { role: 'developer' })).status, 200)
  })
})

describe('other creates', () => {
  test('have no limit, so they need no reason', async () => {
    const project = await makeProject({
      plan_id: (await makePlan({ max_domains: 0, max_users: 0, max_mails_per_day: 0 })).id,
      reason: 'The owner is one more than the plan allows',
    })
    const answer = await admin.post(`/projects/${project.id}/endpoints`, endpointConfiguration)
    assert.equal(answer.status, 201)
    assert.equal((await auditRowOf(database, answer))?.limit_exception, null)
  })
})

describe('an identifier in a path', () => {
  const hostile = [
    ...[
      '',
      '%20',
      '%201',
      '1%20',
      '%091',
      '1%0A',
      '1%00',
      '%2B5',
      '+5',
      '-1',
      '-0',
      '00',
      '01',
      '1.0',
      '1.',
      '.5',
    ],
    ...[
      '1e3',
      '1E3',
      '0x10',
      '0b1',
      '0o7',
      '1n',
      '1_000',
      '1,000',
      '1%2C000',
      'NaN',
      'Infinity',
      'null',
      'true',
    ],
    ...[
      'undefined',
      'me',
      '*',
      '$1',
      "1'",
      '1%27%20or%201=1',
      '1%2F2',
      '1;2',
      '%EF%BC%91',
      '%D9%A3',
      '%C2%B2',
      '[1]',
    ],
    ...[
      '9007199254740992',
      '9007199254740993',
      '9999999999999999',
      '10000000000000000',
      '9223372036854775807',
    ],
    ...['9223372036854775808', '18446744073709551616', '9'.repeat(400)],
  ]
  const parameters = adminOperations.flatMap((operation) =>
    Object.keys(operation.params.properties)
      // An address can be any text.
      .filter((parameter) => parameter !== 'address')
      .map((parameter) => ({ operation, parameter })),
  )

  const ask = (operation: (typeof adminOperations)[number], address: string) =>
    admin.request(
      methodOf(operation),
      address.replace('/admin', '') + neededQuery(operation),
      isMutation(operation) ? { ...operation.example, reason } : operation.body?.example,
    )

  /** Uses this id for every path parameter. Messages, bulk actions and delivery attempts have UUIDs. */
  const addressOf = (path: string, id: string): string =>
    path.replace(/(?<=\/(messages|bulk|delivery-attempts)\/):id/, neverSent).replaceAll(/:\w+/g, id)

  for (const { operation, parameter } of parameters) {
    test(`${operation.id} rejects a hostile "${parameter}"`, async () => {
      const addresses = hostile.map((spelling) =>
        addressOf(
          operation.path.replace(`:${parameter}`, () => spelling),
          '1',
        ),
      )
      const answers = await Promise.all(addresses.map((address) => ask(operation, address)))
      assert.deepEqual(
        answers.map(({ status, body }, index) => [addresses[index], status, body?.error]),
        addresses.map((address) => [address, 400, 'invalid_parameter']),
      )
    })
  }

  test('is any integer from 0 to 2^53−1, except for a message, a bulk action or a delivery attempt', async () => {
    for (const { operation } of parameters) {
      for (const id of ['0', String(Number.MAX_SAFE_INTEGER)]) {
        assertProblem(await ask(operation, addressOf(operation.path, id)), 404, 'not_found')
      }
    }
  })
})
