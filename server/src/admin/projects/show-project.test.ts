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
const { makePlan, makeProject } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)

describe('projects.show', () => {
  test('shows what was made, with the version in the ETag and without a trace in the audit', async () => {
    const project = await makeProject()
    const answer = await admin.get(`/projects/${project.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, project)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test('shows the counts of the mail plane, which move neither version nor time', async () => {
    const project = await makeProject()
    const counts = { bounced: 3, failed: Number.MAX_SAFE_INTEGER, complained: 1 }
    await database.query(
      `update control.project_stats set bounced = $2, failed = $3, complained = $4, computed_score = 7,
              updated_at = postern.now() where project_id = $1`,
      [project.id, ...Object.values(counts)],
    )
    const answer = await admin.get(`/projects/${project.id}`)
    assert.deepEqual(answer.body, { ...project, ...counts, reputation_score: 7 })
    assert.equal(answer.headers.get('etag'), '"1"')
  })

  test('shows the plan in force as the plan is shown alone, to the last digit', async () => {
    const plan = await makePlan({ max_mails_per_month: Number.MAX_SAFE_INTEGER, price: 9_999_999_999.99 })
    const { id } = await makeProject({ plan_id: plan.id })
    // A clock has finer ticks than what is shown: both ways to the answer have to cut them alike.
    for (const fraction of ['999999', '000001', '123999', '12', '0']) {
      await database.query('update control.plans set created_at = $2, updated_at = $2 where id = $1', [
        plan.id,
        `2026-11-14 09:30:00.${fraction}+00`,
      ])
      const shown = (await admin.get(`/projects/${id}`)).body.plan
      assert.deepEqual(shown, (await admin.get(`/plans/${plan.id}`)).body)
      assert.match(shown.created_at, /^2026-11-14T09:30:00\.\d{3}Z$/)
    }
  })

  test('answers 404 for a project that is not there, and 400 for what is no identifier', async () => {
    for (const id of ['0', '999999999', String(Number.MAX_SAFE_INTEGER)]) {
      assertProblem(await admin.get(`/projects/${id}`), 404, 'not_found')
    }
    for (const id of ['-1', '1e3', '01', '9007199254740992', 'first']) {
      assertProblem(await admin.get(`/projects/${id}`), 400, 'invalid_parameter')
    }
    assertProblem(await admin.get('/projects/1?fields=name'), 400, 'invalid_parameter')
  })
})
