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
const { makeUser, makePlan, makeProject, makeMember } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

type Project = Awaited<ReturnType<typeof makeProject>>

const reason = 'Sold to its new owner'
const edit = (id: number, body: object) => admin.patch(`/projects/${id}`, body)
const show = async (id: number): Promise<Project> => (await admin.get(`/projects/${id}`)).body

const membersOf = async (id: number): Promise<{ id: number; user_id: number | null; role: string }[]> =>
  (await admin.get(`/projects/${id}/members`)).body.data

describe('projects.edit: a transfer', () => {
  test('to another user makes them the owner and the previous owner an admin', async () => {
    const before = await makeProject()
    const [owner] = await membersOf(before.id)
    const heir = await makeUser()
    const answer = await edit(before.id, { user_id: heir.id, reason })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.user_id, heir.id)
    const [made, old, ...others] = await membersOf(before.id)
    assert.deepEqual(others, [])
    assert.deepEqual([made?.user_id, made?.role], [heir.id, 'owner'])
    assert.deepEqual([old?.id, old?.user_id, old?.role], [owner?.id, before.user_id, 'admin'])
    await assertAudited(answer, {
      operation: 'projects.edit',
      project_id: before.id,
      resource: ['project', before.id],
      reason,
      before: keptOfProject(before),
      after: { ...keptOfProject(before), user_id: heir.id },
      related: [
        {
          resource: 'member',
          id: owner?.id ?? 0,
          before: { user_id: before.user_id, role: 'owner' },
          after: { user_id: before.user_id, role: 'admin' },
        },
        { resource: 'member', id: made?.id ?? 0, before: null, after: { user_id: heir.id, role: 'owner' } },
      ],
    })
  })

  test('without a reason is rejected with reason_required, even if it also exceeds a limit', async () => {
    const { id } = await makeProject({ plan_id: (await makePlan({ max_users: 1 })).id })
    const answer = await edit(id, { user_id: (await makeUser()).id })
    assertProblem(answer, 422, 'reason_required')
    await assertNotAudited(answer)
  })

  test('to a member makes them the owner, and a transfer back restores both roles', async () => {
    const project = await makeProject()
    const user = await makeUser()
    const member = await makeMember(project.id, { email: user.email, role: 'viewer' })
    const there = await edit(project.id, { user_id: user.id, reason })
    assert.equal(there.status, 200, there.text)
    const roles = async () => (await membersOf(project.id)).map(({ user_id, role }) => [user_id, role])
    assert.deepEqual(await roles(), [
      [user.id, 'owner'],
      [project.user_id, 'admin'],
    ])
    assert.equal((await membersOf(project.id))[0]?.id, member.id)
    assert.equal((await edit(project.id, { user_id: project.user_id, reason })).status, 200)
    assert.deepEqual(await roles(), [
      [user.id, 'admin'],
      [project.user_id, 'owner'],
    ])
  })

  test('to a user with a pending invitation turns the invitation into the membership', async () => {
    const project = await makeProject()
    const invited = await makeMember(project.id, { email: 'later@example.org', role: 'viewer' })
    assert.equal(invited.user_id, null)
    const user = await makeUser({ email: 'later@example.org', name: 'Late Joiner' })
    const answer = await edit(project.id, { user_id: user.id, reason })
    assert.equal(answer.status, 200, answer.text)
    const { body: member } = await admin.get(`/projects/${project.id}/members/${invited.id}`)
    assert.deepEqual([member.user_id, member.role, member.name], [user.id, 'owner', 'Late Joiner'])
    assert.notEqual(member.joined_at, null)
    assert.equal((await membersOf(project.id)).length, 2)
    const [owner] = (await membersOf(project.id)).filter(({ role }) => role === 'admin')
    await assertAudited(answer, {
      operation: 'projects.edit',
      project_id: project.id,
      resource: ['project', project.id],
      reason,
      before: keptOfProject(project),
      after: { ...keptOfProject(project), user_id: user.id },
      related: [
        {
          resource: 'member',
          id: owner?.id ?? 0,
          before: { user_id: project.user_id, role: 'owner' },
          after: { user_id: project.user_id, role: 'admin' },
        },
        {
          resource: 'member',
          id: invited.id,
          before: { user_id: null, role: 'viewer' },
          after: { user_id: user.id, role: 'owner' },
        },
      ],
    })
  })

  test('to a missing or disabled user is rejected and changes no role', async () => {
    const before = await makeProject()
    const members = await membersOf(before.id)
    const disabled = await makeUser({ is_active: false })
    for (const user_id of [0, 999_999_999, Number.MAX_SAFE_INTEGER, disabled.id]) {
      const answer = await edit(before.id, { user_id, reason })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, /^"user_id"/)
      await assertNotAudited(answer)
    }
    assert.deepEqual(await show(before.id), before)
    assert.deepEqual(await membersOf(before.id), members)
  })

  test('to many users concurrently leaves exactly one owner', async () => {
    const project = await makeProject()
    const heirs = await Promise.all(Array.from({ length: 10 }, () => makeUser()))
    const answers = await Promise.all(heirs.map(({ id }) => edit(project.id, { user_id: id, reason })))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const owners = (await membersOf(project.id)).filter(({ role }) => role === 'owner')
    assert.deepEqual(
      owners.map(({ user_id }) => user_id),
      [(await show(project.id)).user_id],
    )
  })
})
