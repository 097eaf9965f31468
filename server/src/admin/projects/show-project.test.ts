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
  test('returns the created resource with its version in the ETag, and writes no audit row', async () => {
    const project = await makeProject()
    const answer = await admin.get(`/projects/${project.id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, project)
    assert.equal(answer.headers.get('etag'), '"1"')
    await assertNotAudited(answer)
  })

  test("shows the mail side's counters, which change neither version nor updated_at", async () => {
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

  test('returns the current plan exactly as plans.show does', async () => {
    const plan = await makePlan({ max_mails_per_month: Number.MAX_SAFE_INTEGER, price: 9_999_999_999.99 })
    const { id } = await makeProject({ plan_id: plan.id })
    // The database stores finer timestamps than the API returns: both code paths must truncate them in the same way.
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

  test('returns 404 for a missing project, and 400 for an invalid identifier', async () => {
    for (const id of ['0', '999999999', String(Number.MAX_SAFE_INTEGER)]) {
      assertProblem(await admin.get(`/projects/${id}`), 404, 'not_found')
    }
    for (const id of ['-1', '1e3', '01', '9007199254740992', 'first']) {
      assertProblem(await admin.get(`/projects/${id}`), 400, 'invalid_parameter')
    }
    assertProblem(await admin.get('/projects/1?fields=name'), 400, 'invalid_parameter')
  })
})
