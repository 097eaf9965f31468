import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makeProject, makeMember } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

type Member = Awaited<ReturnType<typeof makeMember>>

const pathOf = ({ project_id, id }: Pick<Member, 'project_id' | 'id'>) =>
  `/projects/${project_id}/members/${id}`
const ownerOf = async (projectId: number): Promise<Member> =>
  (await admin.get(`/projects/${projectId}/members`)).body.data.find(({ role }: Member) => role === 'owner')

const { id: projectId } = await makeProject()

describe('members.edit', () => {
  test('changes the role of a member, without a reason', async () => {
    const user = await makeUser()
    const before = await makeMember(projectId, { email: user.email, role: 'viewer' })
    const answer = await admin.patch(pathOf(before), { role: 'admin' })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, { ...before, role: 'admin', updated_at: answer.body.updated_at })
    assert.equal(answer.headers.get('etag'), '"2"')
    assert.deepEqual((await admin.get(pathOf(before))).body, answer.body)
    await assertAudited(answer, {
      operation: 'members.edit',
      project_id: projectId,
      resource: ['member', before.id],
      before: { user_id: user.id, role: 'viewer' },
      after: { user_id: user.id, role: 'admin' },
      subject: { email: user.email, name: user.name },
    })
  })

  test('changes the role of an invitation, and records the reason', async () => {
    const before = await makeMember(projectId, { role: 'admin' })
    const answer = await admin.patch(pathOf(before), { role: 'viewer', reason: 'Requested by the owner' })
    assert.deepEqual([answer.body.role, answer.body.joined_at], ['viewer', null])
    await assertAudited(answer, {
      operation: 'members.edit',
      project_id: projectId,
      resource: ['member', before.id],
      reason: 'Requested by the owner',
      before: { user_id: null, role: 'admin' },
      after: { user_id: null, role: 'viewer' },
      subject: { email: before.email, name: null },
    })
  })

  test('to the same role keeps the version and writes no audit row', async () => {
    const member = await makeMember(projectId, { role: 'viewer' })
    const answer = await admin.patch(pathOf(member), { role: 'viewer', reason: 'To be sure' })
    assert.deepEqual(answer.body, member)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test('cannot change the owner, whose role changes only with a transfer', async () => {
    const owner = await ownerOf(projectId)
    for (const role of ['admin', 'developer', 'viewer']) {
      const answer = await admin.patch(pathOf(owner), { role, reason: 'Requested anyway' })
      assertProblem(answer, 409, 'last_owner')
      assert.match(answer.body.message, /"user_id"/)
      await assertNotAudited(answer)
    }
    assert.deepEqual(await ownerOf(projectId), owner)
  })

  test('can change the previous owner after a transfer', async () => {
    const project = await makeProject()
    const owner = await ownerOf(project.id)
    await admin.patch(`/projects/${project.id}`, { user_id: (await makeUser()).id, reason: 'Sold' })
    assert.equal((await admin.patch(pathOf(owner), { role: 'viewer' })).body.role, 'viewer')
  })

  test('rejects the role owner and all other fields', async () => {
    const member = await makeMember(projectId)
    for (const body of [
      { role: 'owner' },
      { role: 'root' },
      { role: null },
      {},
      { role: 'admin', email: 'other@example.org' },
      { role: 'admin', user_id: 1 },
    ]) {
      assertProblem(await admin.patch(pathOf(member), body), 422, 'validation_failed')
    }
    assert.deepEqual((await admin.get(pathOf(member))).body, member)
  })

  test("returns the same 404 for another project's member as for a missing one", async () => {
    const member = await makeMember(projectId)
    const other = await makeProject()
    const foreign = await admin.patch(pathOf({ ...member, project_id: other.id }), { role: 'admin' })
    assertProblem(foreign, 404, 'not_found')
    await assertNotAudited(foreign)
    assertProblem(
      await admin.patch(pathOf({ project_id: other.id, id: 999_999_999 }), { role: 'admin' }),
      404,
      'not_found',
    )
    assertProblem(
      await admin.patch(pathOf({ ...member, project_id: 999_999_999 }), { role: 'admin' }),
      404,
      'not_found',
    )
    assert.deepEqual((await admin.get(pathOf(member))).body, member)
  })
})
