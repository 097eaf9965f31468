import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject, makeMember } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'Agreed with sales'
const create = (projectId: number, body: object) =>
  admin.post(`/projects/${projectId}/members`, { email: 'grace@example.com', role: 'developer', ...body })
const countMembers = async (projectId: number): Promise<number> =>
  (await admin.get(`/projects/${projectId}/members`)).body.data.length

const projectFor = async (max_users: number) => makeProject({ plan_id: (await makePlan({ max_users })).id })

describe('members.create', () => {
  test('adds a user with an account immediately', async () => {
    const { id: projectId } = await makeProject()
    const user = await makeUser()
    const answer = await create(projectId, { email: user.email, role: 'admin' })
    assert.equal(answer.status, 201, answer.text)
    const { id, invited_at, joined_at, created_at, updated_at } = answer.body
    assert.deepEqual(answer.body, {
      id,
      project_id: projectId,
      user_id: user.id,
      email: user.email,
      name: user.name,
      role: 'admin',
      invited_at,
      joined_at,
      created_at,
      updated_at,
    })
    assert.equal(joined_at, created_at)
    assert.equal(answer.headers.get('location'), `/v1/admin/projects/${projectId}/members/${id}`)
    assert.equal(answer.headers.get('etag'), '"1"')
    assert.deepEqual((await admin.get(`/projects/${projectId}/members/${id}`)).body, answer.body)
    await assertAudited(answer, {
      operation: 'members.create',
      project_id: projectId,
      resource: ['member', id],
      after: { user_id: user.id, role: 'admin' },
      subject: { email: user.email, name: user.name },
    })
  })

  test('invites any other address', async () => {
    const { id: projectId } = await makeProject()
    const answer = await create(projectId, { email: 'nobody.yet@example.com', role: 'viewer', reason })
    assert.equal(answer.status, 201, answer.text)
    const { id, user_id, name, joined_at, invited_at, created_at } = answer.body
    assert.deepEqual([user_id, name, joined_at, invited_at], [null, null, null, created_at])
    await assertAudited(answer, {
      operation: 'members.create',
      project_id: projectId,
      resource: ['member', id],
      reason,
      after: { user_id: null, role: 'viewer' },
      subject: { email: 'nobody.yet@example.com', name: null },
    })
  })

  test('treats addresses as case-insensitive', async () => {
    const { id: projectId } = await makeProject()
    const user = await makeUser({ email: 'mixed.case@example.org' })
    const joined = await create(projectId, { email: 'Mixed.Case@EXAMPLE.org' })
    assert.deepEqual([joined.body.user_id, joined.body.email], [user.id, 'mixed.case@example.org'])
    assertProblem(await create(projectId, { email: 'mixed.CASE@example.org' }), 409, 'already_exists')
    assert.equal(
      (await create(projectId, { email: 'New.Face@Example.org' })).body.email,
      'new.face@example.org',
    )
    assertProblem(await create(projectId, { email: 'new.face@example.org' }), 409, 'already_exists')
  })

  test('rejects an address that is already a member, owner or invited, even with a reason', async () => {
    const owner = await makeUser()
    const { id: projectId } = await makeProject({ user_id: owner.id })
    const member = await makeUser()
    await makeMember(projectId, { email: member.email })
    await makeMember(projectId, { email: 'invited@example.org' })
    for (const email of [owner.email, member.email, 'invited@example.org']) {
      const answer = await create(projectId, { email, reason })
      assertProblem(answer, 409, 'already_exists')
      await assertNotAudited(answer)
    }
    // The account is already a member, under its previous address.
    await database.query('update control.users set email = $2 where id = $1', [
      member.id,
      'moved@example.org',
    ])
    assertProblem(await create(projectId, { email: 'moved@example.org', reason }), 409, 'already_exists')
    assert.equal(await countMembers(projectId), 3)
  })

  test('allows one person in many projects', async () => {
    const user = await makeUser()
    for (const { id } of [await makeProject(), await makeProject()]) {
      assert.equal((await create(id, { email: user.email })).body.user_id, user.id)
    }
  })

  test('accepts every role except owner', async () => {
    const { id } = await makeProject()
    for (const role of ['admin', 'developer', 'viewer']) {
      assert.equal((await create(id, { email: `${role}@example.org`, role })).body.role, role)
    }
    for (const role of ['owner', 'Admin', '', null]) {
      assertProblem(await create(id, { email: 'x@example.org', role }), 422, 'validation_failed')
    }
  })

  test('rejects an invalid address', async () => {
    const { id } = await makeProject()
    const emails = [
      '',
      'grace',
      'grace@',
      '@example.org',
      'grace@example',
      'a b@example.org',
      'a@example.org ',
    ]
    const odd = [
      'a@b@example.org',
      '.a@example.org',
      'a..b@example.org',
      'grâce@example.org',
      'a@[127.0.0.1]',
    ]
    for (const email of [...emails, ...odd, `${'x'.repeat(250)}@example.org`, 'a@example.org\n', 7, null]) {
      const answer = await create(id, { email })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /"email"/)
    }
    assert.equal(await countMembers(id), 1)
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await create(999_999_999, { reason }), 404, 'not_found')
  })
})

describe('members.create: max_users of the current plan', () => {
  test('rejects a create that would exceed it, and says that a reason is required', async () => {
    const { id } = await projectFor(2)
    assert.equal((await create(id, { email: 'second@example.org' })).status, 201)
    const answer = await create(id, { email: 'third@example.org' })
    assertProblem(answer, 422, 'limit_exceeded')
    assert.match(answer.body.message, /allows 2 .*"reason"/)
    await assertNotAudited(answer)
    assert.equal(await countMembers(id), 2)
  })

  test('can be exceeded with a reason, and the audit row records the limit, its value and the count', async () => {
    const { id: projectId } = await projectFor(1)
    for (const count of [2, 3]) {
      const email = `number${count}@example.org`
      const answer = await create(projectId, { email, reason })
      assert.equal(answer.status, 201, answer.text)
      await assertAudited(answer, {
        operation: 'members.create',
        project_id: projectId,
        resource: ['member', answer.body.id],
        reason,
        after: { user_id: null, role: 'developer' },
        limit_exception: { limit: 'max_users', value: 1, count },
        subject: { email, name: null },
      })
    }
  })

  test('records no exception for an unneeded reason', async () => {
    const { id: projectId } = await projectFor(2)
    const answer = await create(projectId, { reason })
    await assertAudited(answer, {
      operation: 'members.create',
      project_id: projectId,
      resource: ['member', answer.body.id],
      reason,
      after: { user_id: null, role: 'developer' },
      subject: { email: 'grace@example.com', name: null },
    })
  })

  test('allows another member after one is removed', async () => {
    const { id } = await projectFor(2)
    const member = await makeMember(id)
    assertProblem(await create(id, {}), 422, 'limit_exceeded')
    await admin.delete(`/projects/${id}/members/${member.id}`, { reason })
    assert.equal((await create(id, {})).status, 201)
  })

  test('is taken from the plan override, if one is set', async () => {
    const { id } = await projectFor(1)
    const larger = await makePlan({ max_users: 2 })
    await admin.patch(`/projects/${id}`, { admin_plan_id: larger.id, reason })
    assert.equal((await create(id, { email: 'second@example.org' })).status, 201)
    assertProblem(await create(id, { email: 'third@example.org' }), 422, 'limit_exceeded')
    await admin.patch(`/projects/${id}`, { admin_plan_id: null, reason })
    const answer = await create(id, { email: 'third@example.org' })
    assertProblem(answer, 422, 'limit_exceeded')
    assert.match(answer.body.message, /allows 1 /)
  })

  test('of 0 is exceeded by any member', async () => {
    const plan_id = (await makePlan({ max_users: 0 })).id
    const { id } = await makeProject({ plan_id, reason })
    assertProblem(await create(id, {}), 422, 'limit_exceeded')
  })

  test('is not revealed if the request is rejected anyway', async () => {
    const { id } = await projectFor(1)
    const { email } = (await admin.get(`/projects/${id}/members`)).body.data[0]
    assertProblem(await create(id, { email }), 409, 'already_exists')
  })
})

describe('members.create: two concurrent requests for the last seat', () => {
  const rounds = 15
  const together = (projectId: number, body: object) =>
    Promise.all(['one@example.org', 'two@example.org'].map((email) => create(projectId, { ...body, email })))

  test('with reasons, exactly one is an exception', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await projectFor(2)
      const answers = await together(id, { reason })
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 201],
      )
      const rows = await database.query(
        `select limit_exception from control.audit
          where project_id = $1 and operation = 'members.create' order by seq`,
        [id],
      )
      assert.deepEqual(
        rows.map(({ limit_exception }) => limit_exception),
        [null, { limit: 'max_users', value: 2, count: 3 }],
      )
    }
  })

  test('without reasons, exactly one is rejected', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await projectFor(2)
      const answers = await together(id, {})
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 422])
      assert.equal(await countMembers(id), 2)
    }
  })

  test('for the same address, exactly one succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const { id } = await makeProject()
      const answers = await Promise.all([create(id, {}), create(id, {}), create(id, {})])
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409])
      assert.equal(await countMembers(id), 2)
    }
  })

  test('one that waits for a change to the plan must meet the new limit', async () => {
    const project = await makeProject()
    const small = await makePlan({ max_users: 1 })
    const answer = await holdingBack(
      database,
      `update control.projects set admin_plan_id = ${small.id}, version = version + 1 where id = ${project.id}`,
      () => create(project.id, {}),
    )
    assertProblem(answer, 422, 'limit_exceeded')
  })

  test('one that waits for the project must meet a limit that was lowered in the meantime', async () => {
    const plan = await makePlan({ max_users: 10 })
    const project = await makeProject({ plan_id: plan.id })
    const answer = await holdingBack(
      database,
      `select from control.projects where id = ${project.id} for update`,
      () => create(project.id, { email: 'late@example.com' }),
      async () => {
        assert.equal((await admin.patch(`/plans/${plan.id}`, { max_users: 1 })).status, 200)
      },
    )
    assertProblem(answer, 422, 'limit_exceeded')
  })
})
