import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const { admin, ownProject, member } = await customers(api, database)
const { owner, project } = await ownProject()
const path = `/projects/${project.id}`

describe('projects.edit by a customer', () => {
  test('renames the project and increments its version', async () => {
    const before = await owner.get(path)
    const answer = await owner.patch(path, { name: ' Renamed ' })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.name, 'Renamed')
    assert.equal(answer.headers.get('etag'), '"2"')
    const { updated_at, ...rest } = answer.body
    const { updated_at: updatedBefore, ...restBefore } = before.body
    assert.deepEqual(rest, { ...restBefore, name: 'Renamed' })
    assert.ok(updated_at > updatedBefore)
    assert.deepEqual((await owner.get(path)).body, answer.body)
    assert.equal((await admin.get(path)).body.name, 'Renamed')
  })

  test('changes nothing when the name is the same', async () => {
    const { body, headers } = await owner.get(path)
    const answer = await owner.patch(path, { name: body.name })
    assert.deepEqual([answer.status, answer.body], [200, body])
    assert.equal(answer.headers.get('etag'), headers.get('etag'))
  })

  test('rejects fields that only administrators can set', async () => {
    const before = await owner.get(path)
    for (const field of [
      'user_id',
      'is_locked',
      'reputation_score',
      'plan_id',
      'allow_service_mta',
      'reason',
    ]) {
      assertProblem(await owner.patch(path, { name: 'X', [field]: 1 }), 422, 'validation_failed')
    }
    assertProblem(await owner.patch(path, {}), 422, 'validation_failed')
    assertProblem(await owner.patch(`${path}?dry_run=true`, { name: 'X' }), 400, 'invalid_parameter')
    assert.deepEqual((await owner.get(path)).body, before.body)
  })

  test('honours If-Match', async () => {
    const etag = (await owner.get(path)).headers.get('etag') ?? ''
    assertProblem(await owner.patch(path, { name: 'Stale' }, { 'if-match': '"0"' }), 412, 'stale_resource')
    assert.equal((await owner.patch(path, { name: 'Fresh' }, { 'if-match': etag })).status, 200)
    assertProblem(await owner.patch(path, { name: 'Stale' }, { 'if-match': etag }), 412, 'stale_resource')
  })

  test('rejects a role that was revoked while the request waited for the lock', async () => {
    const colleague = await member(project.id, 'admin')
    const lowered = await holdingBack(
      database,
      `select from control.projects where id = ${project.id} for no key update;
       update control.members set role = 'viewer' where id = ${colleague.memberId}`,
      () => colleague.patch(path, { name: 'By somebody lowered' }),
    )
    assertProblem(lowered, 403, 'insufficient_role')
    await database.query(`update control.members set role = 'admin' where id = $1`, [colleague.memberId])
    const removed = await holdingBack(
      database,
      `select from control.projects where id = ${project.id} for no key update;
       delete from control.members where id = ${colleague.memberId}`,
      () => colleague.patch(path, { name: 'By somebody removed' }),
    )
    assertProblem(removed, 404, 'not_found')
    assert.equal((await owner.get(path)).body.name, 'Fresh')
  })
})
