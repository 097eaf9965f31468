import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditOf, keptOfProject } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject } = fixtures(database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

type Project = Awaited<ReturnType<typeof makeProject>>

const reason = 'Ticket 4711'
const edit = (id: number, body: object) => admin.patch(`/projects/${id}`, body)
const show = async (id: number): Promise<Project> => (await admin.get(`/projects/${id}`)).body

/** A lock is an intervention, which the audit row of the edit contains. */
async function startedLock(projectId: number) {
  const [{ id }] = (await admin.get(`/projects/${projectId}/interventions`)).body.data
  const after = { kind: 'lock', public_note: null, pace_per_hour: null, expires_at: null, ended_by: null }
  return { resource: 'intervention', id, before: null, after }
}

describe('projects.edit', () => {
  test('changes only the specified fields', async () => {
    const plan = await makePlan()
    const values = {
      name: 'Renamed',
      reputation_score: 40,
      is_locked: true,
      allow_service_mta: true,
      plan_id: plan.id,
      admin_subscription_status: 'paused',
    }
    for (const [field, value] of Object.entries(values)) {
      const before = await makeProject()
      const answer = await edit(before.id, { [field]: value, reason })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(answer.body, {
        ...before,
        [field]: value,
        ...(field === 'plan_id' ? { plan } : {}),
        updated_at: answer.body.updated_at,
      })
      assert.notEqual(answer.body.updated_at, before.updated_at)
      assert.deepEqual(await show(before.id), answer.body)
      await assertAudited(answer, {
        operation: 'projects.edit',
        project_id: before.id,
        resource: ['project', before.id],
        reason,
        before: keptOfProject(before),
        after: keptOfProject({ ...before, [field]: value }),
        ...(field === 'is_locked' && { related: [await startedLock(before.id)] }),
      })
    }
  })

  test('changes several fields together, in one audit row', async () => {
    const before = await makeProject()
    const change = { name: 'Renamed', reputation_score: 0, is_locked: true, allow_service_mta: true }
    const answer = await edit(before.id, { ...change, reason })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('etag'), '"2"')
    await assertAudited(answer, {
      operation: 'projects.edit',
      project_id: before.id,
      resource: ['project', before.id],
      reason,
      before: keptOfProject(before),
      after: keptOfProject({ ...before, ...change }),
      related: [await startedLock(before.id)],
    })
  })

  test('requires no reason for a name or a billed plan, and records a provided reason, trimmed', async () => {
    const project = await makeProject()
    const unexplained = await edit(project.id, { name: 'Other', plan_id: (await makePlan()).id })
    assert.equal(unexplained.status, 200, unexplained.text)
    const between = unexplained.body
    const explained = await edit(project.id, { name: 'Again another', reason: `  ${reason}\t` })
    await assertAudited(explained, {
      operation: 'projects.edit',
      project_id: project.id,
      resource: ['project', project.id],
      reason,
      before: keptOfProject(between),
      after: { ...keptOfProject(between), name: 'Again another' },
    })
  })

  test('requires a reason for each change to a lock, score, owner or override, but not for unchanged values', async () => {
    const changes = {
      is_locked: true,
      reputation_score: 99,
      allow_service_mta: true,
      admin_plan_id: (await makePlan()).id,
      admin_subscription_status: 'active',
      user_id: (await makeUser()).id,
    }
    for (const [field, value] of Object.entries(changes)) {
      const before = await makeProject()
      const answer = await edit(before.id, { name: 'Renamed', [field]: value })
      assertProblem(answer, 422, 'reason_required')
      assert.ok(answer.body.message.includes(`"${field}"`) && !answer.body.message.includes('"name"'))
      await assertNotAudited(answer)
      assert.deepEqual(await show(before.id), before)

      const same = { [field]: before[field as keyof Project] }
      const unchanged = await edit(before.id, same)
      assert.equal(unchanged.status, 200, unchanged.text)
      assert.deepEqual(unchanged.body, before)
      await assertNotAudited(unchanged)
      assert.equal((await edit(before.id, { ...same, name: 'Renamed' })).status, 200)
    }
  })

  test('names every field that lacks a reason', async () => {
    const { id } = await makeProject()
    const answer = await edit(id, { is_locked: true, allow_service_mta: true })
    assertProblem(answer, 422, 'reason_required')
    assert.match(answer.body.message, /"is_locked", "allow_service_mta"/)
  })

  test('trims the name, and rejects empty and unprintable names', async () => {
    const { id } = await makeProject()
    assert.equal((await edit(id, { name: '  Größer ' })).body.name, 'Größer')
    for (const name of ['', '   ', 'two\nlines', 'x'.repeat(101), 7, null]) {
      const answer = await edit(id, { name })
      assertProblem(answer, 422, 'validation_failed')
      await assertNotAudited(answer)
    }
    assert.equal((await show(id)).name, 'Größer')
  })

  test('rejects invalid values, and fields that only billing or the mail side sets', async () => {
    const before = await makeProject()
    const bodies = [
      { reputation_score: -1 },
      { reputation_score: 101 },
      { reputation_score: 50.5 },
      { reputation_score: '50' },
      { reputation_score: null },
      { is_locked: 'true' },
      { is_locked: null },
      { allow_service_mta: 1 },
      { plan_id: null },
      { user_id: null },
      { admin_subscription_status: 'cancelled' },
      { admin_subscription_status: '' },
      { billing_subscription_status: 'active' },
      { bounced: 0 },
      { id: 1 },
    ]
    for (const body of bodies)
      assertProblem(await edit(before.id, { ...body, reason }), 422, 'validation_failed')
    assert.deepEqual(await show(before.id), before)
  })
})

describe('projects.edit: the score', () => {
  const computed = (id: number, score: number) =>
    database.query('update control.project_stats set computed_score = $2 where project_id = $1', [id, score])
  const shown = async (id: number) => (await show(id)).reputation_score

  test('is a permanent offset to the computed score, limited to the range from 0 to 100', async () => {
    const { id } = await makeProject()
    await computed(id, 80)
    assert.equal(await shown(id), 80)
    assert.equal((await edit(id, { reputation_score: 60, reason })).body.reputation_score, 60)
    for (const [score, expected] of [
      [90, 70],
      [100, 80],
      [30, 10],
      [10, 0],
      [80, 60],
    ] as const) {
      await computed(id, score)
      assert.equal(await shown(id), expected)
    }
  })

  test('is relative to the computed score when set again, not to the earlier offset', async () => {
    const { id } = await makeProject()
    await computed(id, 50)
    await edit(id, { reputation_score: 100, reason })
    await edit(id, { reputation_score: 45, reason })
    await computed(id, 60)
    assert.equal(await shown(id), 55)
  })

  test('can be set from one end of the scale to the other', async () => {
    const { id } = await makeProject()
    await computed(id, 100)
    assert.equal((await edit(id, { reputation_score: 0, reason })).body.reputation_score, 0)
    await computed(id, 0)
    assert.equal((await edit(id, { reputation_score: 100, reason })).body.reputation_score, 100)
  })

  test('changes with delivery results without a new version', async () => {
    const { id } = await makeProject()
    await computed(id, 12)
    const answer = await admin.get(`/projects/${id}`)
    assert.equal(answer.body.reputation_score, 12)
    assert.equal(answer.headers.get('etag'), '"1"')
  })
})

describe('projects.edit: the plan', () => {
  test('is the override while it is set, and the billed plan after the override is cleared', async () => {
    const [billed, other, granted] = [await makePlan(), await makePlan(), await makePlan()]
    const { id } = await makeProject({ plan_id: billed.id })
    const set = await edit(id, { admin_plan_id: granted.id, reason })
    assert.deepEqual(
      [set.body.plan_id, set.body.admin_plan_id, set.body.plan],
      [billed.id, granted.id, granted],
    )
    const rebilled = await edit(id, { plan_id: other.id })
    assert.deepEqual([rebilled.body.plan_id, rebilled.body.plan], [other.id, granted])
    assertProblem(await edit(id, { admin_plan_id: null }), 422, 'reason_required')
    const cleared = await edit(id, { admin_plan_id: null, reason })
    assert.deepEqual([cleared.body.admin_plan_id, cleared.body.plan], [null, other])
    await assertAudited(cleared, {
      operation: 'projects.edit',
      project_id: id,
      resource: ['project', id],
      reason,
      before: keptOfProject(rebilled.body),
      after: { ...keptOfProject(rebilled.body), admin_plan_id: null },
    })
  })

  test('must exist and be active to be newly assigned, as billed plan and as override', async () => {
    const before = await makeProject()
    const retired = await makePlan({ is_active: false })
    for (const field of ['plan_id', 'admin_plan_id']) {
      const inactive = await edit(before.id, { [field]: retired.id, reason })
      assertProblem(inactive, 422, 'plan_inactive')
      assert.ok(inactive.body.message.includes(`"${field}"`))
      for (const id of [0, 999_999_999, Number.MAX_SAFE_INTEGER]) {
        assertProblem(await edit(before.id, { [field]: id, reason }), 422, 'validation_failed')
      }
    }
    assert.deepEqual(await show(before.id), before)
  })

  test('that became inactive stays assigned to its projects, which can still be edited', async () => {
    const plan = await makePlan()
    const project = await makeProject({ plan_id: plan.id })
    await edit(project.id, { admin_plan_id: plan.id, reason })
    assert.equal((await admin.patch(`/plans/${plan.id}`, { is_active: false })).status, 200)
    const answer = await edit(project.id, { name: 'Still here', plan_id: plan.id, admin_plan_id: plan.id })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.plan.is_active, false)
    assert.equal(answer.body.plan.id, plan.id)
  })
})

describe('projects.edit: an override', () => {
  test('of the subscription status is set, changed and cleared with a reason each time', async () => {
    const { id } = await makeProject()
    for (const status of ['trialing', 'active', 'past_due', 'canceled', 'paused', null]) {
      const before = await show(id)
      assertProblem(await edit(id, { admin_subscription_status: status }), 422, 'reason_required')
      const answer = await edit(id, { admin_subscription_status: status, reason })
      assert.equal(answer.body.admin_subscription_status, status)
      await assertAudited(answer, {
        operation: 'projects.edit',
        project_id: id,
        resource: ['project', id],
        reason,
        before: keptOfProject(before),
        after: { ...keptOfProject(before), admin_subscription_status: status },
      })
    }
  })

  test('does not change the billing state', async () => {
    const { id } = await makeProject()
    const billing = {
      billing_subscription_id: 'sub_1',
      billing_subscription_status: 'canceled',
      billing_product_id: 'prod_1',
    }
    await admin.put(`/projects/${id}/billing`, billing)
    const { body } = await edit(id, { admin_subscription_status: 'active', name: 'Renamed', reason })
    assert.deepEqual({ ...body, ...billing }, body)
  })
})

describe('projects.edit, waiting for another edit', () => {
  test('that changes the current plan reads the new plan', async () => {
    const project = await makeProject()
    const granted = await makePlan()
    const answer = await holdingBack(
      database,
      `update control.projects set admin_plan_id = ${granted.id}, version = version + 1 where id = ${project.id}`,
      () => edit(project.id, { name: 'Renamed' }),
    )
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body.plan, granted)
    await assertAudited(answer, {
      operation: 'projects.edit',
      project_id: project.id,
      resource: ['project', project.id],
      before: { ...keptOfProject(project), admin_plan_id: granted.id },
      after: { ...keptOfProject(project), admin_plan_id: granted.id, name: 'Renamed' },
    })
  })

  test('that sets the score starts from the score set by the other edit', async () => {
    const project = await makeProject()
    const answer = await holdingBack(
      database,
      `with moved as (update control.projects set version = version + 1 where id = ${project.id})
       update control.project_stats set score_offset = -30 where project_id = ${project.id}`,
      () => edit(project.id, { reputation_score: 100, reason }),
    )
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await show(project.id)).reputation_score, 100)
    await assertAudited(answer, {
      operation: 'projects.edit',
      project_id: project.id,
      resource: ['project', project.id],
      reason,
      before: keptOfProject({ ...project, reputation_score: 70 }),
      after: keptOfProject(project),
    })
  })

  test('removes an offset that would exceed the end of the scale', async () => {
    const { id } = await makeProject()
    const computed = (score: number) =>
      database.query('update control.project_stats set computed_score = $2 where project_id = $1', [
        id,
        score,
      ])
    await computed(80)
    assert.equal((await edit(id, { reputation_score: 100, reason })).body.reputation_score, 100)
    await computed(100)
    assert.equal((await edit(id, { reputation_score: 100, reason })).headers.get('etag'), '"3"')
    await computed(70)
    assert.equal((await show(id)).reputation_score, 70)
    assert.equal((await edit(id, { reputation_score: 70, reason })).headers.get('etag'), '"3"')
  })
})
