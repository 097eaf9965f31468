import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditRowOf } from '../../testing/expectations/audit-row.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeIntervention } = fixtures(database, admin)
const reason = 'The list was cleaned up'

const end = (projectId: number, id: number, query = '') =>
  admin.post(`/projects/${projectId}/interventions/${id}/end${query}`, { reason })
const isLocked = async (projectId: number) => (await admin.get(`/projects/${projectId}`)).body.is_locked

describe('interventions.end', () => {
  test('ends one lock; the project stays locked until the last one ends', async () => {
    const project = await makeProject()
    const [first, second] = [
      await makeIntervention(project.id, { kind: 'lock' }),
      await makeIntervention(project.id, { kind: 'lock' }),
    ]
    const answer = await end(project.id, first.id)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.ended_by, 'administrator')
    assert.ok(answer.body.ended_at >= answer.body.created_at)
    assert.equal(await isLocked(project.id), true)
    const row = (await auditRowOf(database, answer)) ?? assert.fail()
    assert.deepEqual([row.operation, row.reason, row.related], ['interventions.end', reason, null])

    const last = await end(project.id, second.id)
    assert.equal(await isLocked(project.id), false)
    const related = (await auditRowOf(database, last))?.related as { resource: string }[] | undefined
    assert.deepEqual(
      related?.map(({ resource }) => resource),
      ['project'],
    )
    assertProblem(await end(project.id, second.id), 409, 'already_ended')
  })

  test('is not possible for an intervention of another project', async () => {
    const [project, other] = [await makeProject(), await makeProject()]
    const { id } = await makeIntervention(other.id)
    const answers = [await end(project.id, id), await end(project.id, 987_654_321)]
    for (const answer of answers) assertProblem(answer, 404, 'not_found')
  })

  test('previews what stays in force', async () => {
    const project = await makeProject()
    const pace = await makeIntervention(project.id, { kind: 'pace', pace_per_hour: 5 })
    const hold = await makeIntervention(project.id, { kind: 'hold' })
    const { body } = await end(project.id, hold.id, '?dry_run=true')
    assert.deepEqual(body.effects, ['Other interventions stay in force: pace.'])
    await end(project.id, hold.id)
    const alone = await end(project.id, pace.id, '?dry_run=true')
    assert.deepEqual(alone.body.effects, ['No other intervention restricts the project. Queued messages: 0.'])
  })
})

describe('interventions.edit', () => {
  test('changes the pace, the note and the expiry', async () => {
    const project = await makeProject()
    const { id } = await makeIntervention(project.id, { kind: 'pace', pace_per_hour: 5 })
    const path = `/projects/${project.id}/interventions/${id}`
    const answer = await admin.patch(path, {
      pace_per_hour: 7,
      public_note: 'A little faster.',
      expires_at: null,
      reason,
    })
    assert.deepEqual([answer.status, answer.body.pace_per_hour], [200, 7])
    const [restriction] = await database.query<{ pace_per_hour: number }>(
      'select pace_per_hour from control.queue_restrictions where project_id = $1',
      [project.id],
    )
    assert.equal(restriction?.pace_per_hour, 7)
    assertProblem(await admin.patch(path, { pace_per_hour: 7, reason }), 422, 'incomplete_configuration')
    await end(project.id, id)
    const late = await admin.patch(path, { pace_per_hour: 8, public_note: null, expires_at: null, reason })
    assertProblem(late, 409, 'already_ended')
  })
})
