import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfProject } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const user = await makeUser()
const plan = await makePlan()
const create = (body: object) =>
  admin.post('/projects', { name: 'Acme', user_id: user.id, plan_id: plan.id, ...body })

const countProjects = async (): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from control.projects'))[0]?.n ?? 0

describe('projects.create', () => {
  test('creates a project that has sent nothing, is not locked and is not billed', async () => {
    const answer = await create({})
    assert.equal(answer.status, 201, answer.text)
    const { id, created_at, updated_at } = answer.body
    assert.deepEqual(answer.body, {
      id,
      user_id: user.id,
      reputation_score: 100,
      bounced: 0,
      failed: 0,
      complained: 0,
      name: 'Acme',
      created_at,
      updated_at,
      is_locked: false,
      allow_service_mta: false,
      plan_id: plan.id,
      admin_plan_id: null,
      billing_subscription_id: null,
      billing_subscription_status: null,
      billing_product_id: null,
      admin_subscription_status: null,
      plan,
    })
    assert.equal(created_at, updated_at)
    assert.equal(answer.headers.get('location'), `/v1/admin/projects/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.deepEqual((await admin.get(`/projects/${id}`)).body, answer.body)
  })

  test('makes the user its only member and owner, with one audit row for both', async () => {
    const answer = await create({ name: '  Trimmed ', reason: 'Signed a contract' })
    assert.equal(answer.body.name, 'Trimmed')
    const { data } = (await admin.get(`/projects/${answer.body.id}/members`)).body
    assert.equal(data.length, 1)
    const [owner] = data
    assert.deepEqual(
      [owner.user_id, owner.email, owner.name, owner.role],
      [user.id, user.email, user.name, 'owner'],
    )
    assert.equal(typeof owner.joined_at, 'string')
    await assertAudited(answer, {
      operation: 'projects.create',
      project_id: answer.body.id,
      resource: ['project', answer.body.id],
      reason: 'Signed a contract',
      after: keptOfProject(answer.body),
      related: [
        { resource: 'member', id: owner.id, before: null, after: { user_id: user.id, role: 'owner' } },
      ],
    })
  })

  test('requires no reason, and starts a new audit chain', async () => {
    const answer = await create({})
    const rows = await database.query('select seq::int from control.audit where chain = $1', [answer.body.id])
    assert.deepEqual(rows, [{ seq: 1 }])
  })

  test('allows a user many projects, even with the same name', async () => {
    const [first, second] = [await create({}), await create({})]
    assert.deepEqual([first.status, second.status], [201, 201])
    assert.notEqual(first.body.id, second.body.id)
  })

  test('rejects a missing or disabled user, and a missing or inactive plan', async () => {
    const before = await countProjects()
    const disabled = await makeUser({ is_active: false })
    const retired = await makePlan({ is_active: false })
    for (const [body, code, field] of [
      [{ user_id: 999_999_999 }, 'validation_failed', 'user_id'],
      [{ user_id: 0 }, 'validation_failed', 'user_id'],
      [{ user_id: disabled.id }, 'validation_failed', 'user_id'],
      [{ plan_id: 999_999_999 }, 'validation_failed', 'plan_id'],
      [{ plan_id: retired.id }, 'plan_inactive', 'plan_id'],
    ] as const) {
      const answer = await create({ ...body, reason: 'Requested anyway' })
      assertProblem(answer, 422, code)
      assert.ok(answer.body.message.startsWith(`"${field}"`), answer.text)
      await assertNotAudited(answer)
    }
    assert.equal(await countProjects(), before)
  })

  test('rejects missing fields, unknown fields and values of the wrong type', async () => {
    const before = await countProjects()
    const bodies = [
      {},
      { name: 'Acme' },
      { name: 'Acme', user_id: user.id },
      { name: '', user_id: user.id, plan_id: plan.id },
      { name: 'a\u0007b', user_id: user.id, plan_id: plan.id },
      { name: 'Acme', user_id: String(user.id), plan_id: plan.id },
      { name: 'Acme', user_id: user.id, plan_id: -1 },
      { name: 'Acme', user_id: user.id, plan_id: 2 ** 53 },
      { name: 'Acme', user_id: user.id, plan_id: plan.id, is_locked: false },
    ]
    for (const body of bodies) assertProblem(await admin.post('/projects', body), 422, 'validation_failed')
    assert.equal(await countProjects(), before)
  })

  test('counts the owner: a plan without members requires a reason, and the exception is recorded', async () => {
    const user = await makeUser()
    const plan = await makePlan({ max_users: 0 })
    const body = { name: 'Nobody', user_id: user.id, plan_id: plan.id }
    const refused = await admin.post('/projects', body)
    assertProblem(refused, 422, 'limit_exceeded')
    const made = await admin.post('/projects', { ...body, reason: 'By agreement' })
    assert.equal(made.status, 201, made.text)
    const [row] = await database.query(
      'select limit_exception, reason from control.audit where request_id = $1',
      [made.headers.get('x-request-id')],
    )
    assert.deepEqual(row, {
      limit_exception: { limit: 'max_users', value: 0, count: 1 },
      reason: 'By agreement',
    })
  })
})
