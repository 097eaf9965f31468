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

const reason = 'Left the company'
const pathOf = ({ project_id, id }: Pick<Member, 'project_id' | 'id'>) =>
  `/projects/${project_id}/members/${id}`
const membersOf = async (projectId: number): Promise<Member[]> =>
  (await admin.get(`/projects/${projectId}/members`)).body.data

const { id: projectId } = await makeProject()

describe('members.delete', () => {
  test('removes a member and keeps the audit rows', async () => {
    const user = await makeUser()
    const member = await makeMember(projectId, { email: user.email, role: 'admin' })
    const answer = await admin.delete(pathOf(member), { reason })
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertProblem(await admin.get(pathOf(member)), 404, 'not_found')
    assertProblem(await admin.delete(pathOf(member), { reason }), 404, 'not_found')
    await assertAudited(answer, {
      operation: 'members.delete',
      project_id: projectId,
      resource: ['member', member.id],
      reason,
      before: { user_id: user.id, role: 'admin' },
      subject: { email: user.email, name: user.name },
    })
  })

  test('withdraws an invitation, and the address can be invited again', async () => {
    const member = await makeMember(projectId, { email: 'again@example.org' })
    const answer = await admin.delete(pathOf(member), { reason })
    await assertAudited(answer, {
      operation: 'members.delete',
      project_id: projectId,
      resource: ['member', member.id],
      reason,
      before: { user_id: null, role: 'developer' },
      subject: { email: 'again@example.org', name: null },
    })
    assert.notEqual((await makeMember(projectId, { email: 'again@example.org' })).id, member.id)
  })

  test('requires a reason', async () => {
    const member = await makeMember(projectId)
    for (const body of [{}, undefined]) {
      const answer = await admin.delete(pathOf(member), body)
      assertProblem(answer, 422, 'reason_required')
      await assertNotAudited(answer)
    }
    for (const empty of ['', '  ', 'a\nb', 'x'.repeat(501), null, 7]) {
      assertProblem(await admin.delete(pathOf(member), { reason: empty }), 422, 'validation_failed')
    }
    assert.deepEqual((await admin.get(pathOf(member))).body, member)
  })

  test('never removes the owner', async () => {
    const project = await makeProject()
    const [owner] = await membersOf(project.id)
    const answer = await admin.delete(pathOf(owner ?? assert.fail()), { reason })
    assertProblem(answer, 409, 'last_owner')
    await assertNotAudited(answer)
    assert.deepEqual(await membersOf(project.id), [owner])
  })

  test("returns the same 404 for another project's member as for a missing one, and removes nobody", async () => {
    const member = await makeMember(projectId)
    const other = await makeProject()
    for (const path of [
      pathOf({ ...member, project_id: other.id }),
      pathOf({ ...member, project_id: 999_999_999 }),
      pathOf({ project_id: projectId, id: 999_999_999 }),
    ]) {
      const answer = await admin.delete(path, { reason })
      assertProblem(answer, 404, 'not_found')
      await assertNotAudited(answer)
    }
    assert.deepEqual((await admin.get(pathOf(member))).body, member)
  })

  test('never removes a member who becomes the owner at the same time', async () => {
    for (let round = 0; round < 15; round++) {
      const project = await makeProject()
      const heir = await makeUser()
      const member = await makeMember(project.id, { email: heir.email })
      const [transfer, removal] = await Promise.all([
        admin.patch(`/projects/${project.id}`, { user_id: heir.id, reason }),
        admin.delete(pathOf(member), { reason }),
      ])
      assert.equal(transfer.status, 200, transfer.text)
      assert.ok([204, 409].includes(removal.status), removal.text)
      const owners = (await membersOf(project.id)).filter(({ role }) => role === 'owner')
      assert.deepEqual(
        owners.map(({ user_id }) => user_id),
        [heir.id],
      )
    }
  })

  test('takes effect once for two concurrent requests', async () => {
    const member = await makeMember(projectId)
    const answers = await Promise.all([1, 2, 3].map(() => admin.delete(pathOf(member), { reason })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  })
})
