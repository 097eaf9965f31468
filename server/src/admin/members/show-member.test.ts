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
const { assertNotAudited } = auditOf(database, admin)

const { id: projectId } = await makeProject()

describe('members.show', () => {
  test('shows a member and an invitation, with the version in the ETag', async () => {
    const user = await makeUser()
    for (const member of [await makeMember(projectId, { email: user.email }), await makeMember(projectId)]) {
      const answer = await admin.get(`/projects/${projectId}/members/${member.id}`)
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body, member)
      assert.equal(answer.headers.get('etag'), '"1"')
      await assertNotAudited(answer)
    }
  })

  test('never returns the token of an invitation', async () => {
    const member = await makeMember(projectId)
    await database.query("update control.members set invitation_hash = '\\xc0ffee' where id = $1", [
      member.id,
    ])
    const answer = await admin.get(`/projects/${projectId}/members/${member.id}`)
    assert.deepEqual(answer.body, member)
    assert.ok(!answer.text.includes('c0ffee'))
  })

  test("returns the same 404 for another project's member as for a missing one", async () => {
    const member = await makeMember(projectId)
    const other = await makeProject()
    const foreign = await admin.get(`/projects/${other.id}/members/${member.id}`)
    assertProblem(foreign, 404, 'not_found')
    const absent = await admin.get(`/projects/${other.id}/members/999999999`)
    assert.equal(foreign.text.replaceAll(String(member.id), '999999999'), absent.text)
    assertProblem(await admin.get(`/projects/999999999/members/${member.id}`), 404, 'not_found')
    assertProblem(await admin.get(`/projects/${projectId}/members/1e3`), 400, 'invalid_parameter')
  })
})
