import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purge } from '../../../platform/db/purge.ts'
import { fixtures } from '../../../testing/fixtures/fixtures.ts'
import { insertProjects } from '../../../testing/fixtures/project-rows.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { holdingBack } from '../../../testing/harness/lock-queue.ts'
import { maintainAttention, readAttention } from './attention.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePlan, makePolicy, makeProject, makeMember, makeDomain, makeFiring, makeIntervention } = fixtures(
  database,
  admin,
)
const db = openDatabase(database).as('admin')
const maintain = () => purge(db, maintainAttention)

/** What the overview shows for a project. */
async function causesOf(projectId: number): Promise<string[]> {
  const { newest } = await db.read(readAttention)
  return newest
    .filter(({ project_id }) => project_id === projectId)
    .map(({ cause, detail }) => `${cause}: ${detail}`)
    .sort()
}

const end = (projectId: number, id: number) =>
  admin.post(`/projects/${projectId}/interventions/${id}/end`, { reason: 'Solved' })

describe('attention for interventions', () => {
  test('begins with the first, names the strictest, and ends with the last', async () => {
    const { id } = await makeProject()
    const warning = await makeIntervention(id)
    assert.deepEqual(await causesOf(id), ['intervention: warn'])
    const lock = await makeIntervention(id, { kind: 'lock' })
    assert.deepEqual(await causesOf(id), ['intervention: lock'])
    assert.equal((await end(id, lock.id)).status, 200)
    assert.deepEqual(await causesOf(id), ['intervention: warn'])
    assert.equal((await end(id, warning.id)).status, 200)
    assert.deepEqual(await causesOf(id), [])
  })

  test('shows an appeal until its intervention ends', async () => {
    const { id, user_id } = await makeProject()
    const lock = await makeIntervention(id, { kind: 'lock' })
    await makeIntervention(id)
    await database.query(
      `insert into control.appeals (intervention_id, project_id, user_id, text) values ($1, $2, $3, 'Sorry')`,
      [lock.id, id, user_id],
    )
    assert.deepEqual(await causesOf(id), ['appeal: lock', 'intervention: lock'])
    await end(id, lock.id)
    assert.deepEqual(await causesOf(id), ['intervention: warn'])
  })

  test('shows no appeal that arrives while its intervention ends', async () => {
    const { id, user_id } = await makeProject()
    const lock = await makeIntervention(id, { kind: 'lock' })
    await holdingBack(
      database,
      `update control.interventions set ended_at = postern.now(), ended_by = 'expiry' where id = ${lock.id}`,
      () =>
        database.query(
          `insert into control.appeals (intervention_id, project_id, user_id, text) values ($1, $2, $3, 'Sorry')`,
          [lock.id, id, user_id],
        ),
    )
    assert.deepEqual(await causesOf(id), [])
  })
})

describe('attention for firings', () => {
  test('names the policy that fired last, and ends after 24 hours', async () => {
    const { id } = await makeProject()
    const policy = await makePolicy({ name: 'First policy' })
    await makeFiring(id, policy.id)
    assert.deepEqual(await causesOf(id), ['firing: First policy'])
    await database.query(
      `update control.attention set since = postern.now() - interval '25 hours' where project_id = $1`,
      [id],
    )
    assert.deepEqual(await causesOf(id), [])
    await maintain()
    const left = await database.query('select from control.attention where project_id = $1', [id])
    assert.equal(left.length, 0)
    await makeFiring(id, policy.id)
    assert.deepEqual(await causesOf(id), ['firing: First policy'])
    await maintain()
    assert.deepEqual(await causesOf(id), ['firing: First policy'])
  })

  test('ends when the policy is deleted, unless another one has fired', async () => {
    const [one, other] = [await makeProject(), await makeProject()]
    const [first, second] = [await makePolicy({ name: 'Kept' }), await makePolicy({ name: 'Deleted' })]
    await makeFiring(one.id, first.id)
    await makeFiring(one.id, second.id)
    await makeFiring(other.id, second.id)
    assert.deepEqual(await causesOf(one.id), ['firing: Deleted'])
    const deleted = await admin.delete(`/policies/${second.id}`, { reason: 'Not needed' })
    assert.equal(deleted.status, 204, deleted.text)
    assert.deepEqual(await causesOf(one.id), ['firing: Kept'])
    assert.deepEqual(await causesOf(other.id), [])
  })
})

describe('attention for domains', () => {
  const write = (id: number, values: string) =>
    database.query(`update control.domains set ${values} where id = $1`, [id])
  const verified = async (projectId: number, name: string) => {
    const { id } = await makeDomain(projectId, { name })
    await write(id, `status = 'verified', verified_at = postern.now(), failing_since = null`)
    return id
  }

  test('begins when a verified domain fails and ends when it recovers', async () => {
    const { id } = await makeProject()
    const domain = await verified(id, 'failing.example.org')
    assert.deepEqual(await causesOf(id), [])
    await write(domain, 'failing_since = postern.now(), checks_failed = 1')
    assert.deepEqual(await causesOf(id), ['domain_failing: failing.example.org'])
    await write(domain, `status = 'failed', verified_at = null`)
    assert.deepEqual(await causesOf(id), ['domain_failing: failing.example.org'])
    await write(domain, `status = 'verified', verified_at = postern.now(), failing_since = null`)
    assert.deepEqual(await causesOf(id), [])
  })

  test('ignores domains that were never verified, and lookups that fail for a short time', async () => {
    const { id } = await makeProject()
    const pending = await makeDomain(id)
    await write(pending.id, `status = 'failed', checks_failed = 9`)
    const domain = await verified(id, 'lookups.example.org')
    await write(domain, 'unanswered_since = postern.now()')
    assert.deepEqual(await causesOf(id), [])
    await write(domain, 'unanswered_warned_days = 3')
    assert.deepEqual(await causesOf(id), ['domain_failing: lookups.example.org'])
  })

  test('ends when the last failing domain is deleted or edited', async () => {
    const { id } = await makeProject()
    const [one, other] = [await verified(id, 'one.example.org'), await verified(id, 'other.example.org')]
    await write(one, `failing_since = postern.now() - interval '1 hour'`)
    await write(other, 'failing_since = postern.now()')
    assert.deepEqual(await causesOf(id), ['domain_failing: other.example.org'])
    await admin.delete(`/projects/${id}/domains/${other}`, { reason: 'Not needed' })
    assert.deepEqual(await causesOf(id), ['domain_failing: one.example.org'])
    await admin.patch(`/projects/${id}/domains/${one}`, { name: 'new.example.org' })
    assert.deepEqual(await causesOf(id), [])
  })

  test('ends when two domains recover at the same time', async () => {
    const { id } = await makeProject()
    const [one, other] = [await verified(id, 'a.example.org'), await verified(id, 'b.example.org')]
    for (const domain of [one, other]) await write(domain, 'failing_since = postern.now()')
    const recovery = 'failing_since = null'
    await holdingBack(database, `update control.domains set ${recovery} where id = ${one}`, () =>
      write(other, recovery),
    )
    assert.deepEqual(await causesOf(id), [])
  })
})

describe('attention for plans', () => {
  test('begins and ends as members are added and removed, and when the plan of the project changes', async () => {
    const [small, large] = [await makePlan({ max_users: 1 }), await makePlan({ max_users: 2 })]
    const { id } = await makeProject({ plan_id: small.id })
    const member = await makeMember(id, { reason: 'Agreed' })
    assert.deepEqual(await causesOf(id), ['over_plan: 2 of 1 member'])
    await admin.patch(`/projects/${id}`, { plan_id: large.id, reason: 'Upgraded' })
    assert.deepEqual(await causesOf(id), [])
    await admin.patch(`/projects/${id}`, { admin_plan_id: small.id, reason: 'Test' })
    assert.deepEqual(await causesOf(id), ['over_plan: 2 of 1 member'])
    await admin.delete(`/projects/${id}/members/${member.id}`, { reason: 'Left' })
    assert.deepEqual(await causesOf(id), [])
  })

  test('follows changes of the limits of a plan, for all of its projects', async () => {
    const ids = await insertProjects(database, 5_500)
    // As if each had one domain.
    await database.query(
      `update control.project_listing set domain_count = 1 where project_id between ${ids[0]} and ${ids.at(-1)}`,
    )
    const over = async () => {
      const [row] = await database.query<{ count: number }>(
        `select count(*)::int from control.attention where cause = 'over_plan' and project_id = any($1)`,
        [ids],
      )
      return row?.count
    }
    const { plan } = (await admin.get(`/projects/${ids[0]}`)).body
    const limit = (max_domains: number) =>
      admin.patch(`/plans/${plan.id}`, { max_domains, reason: 'New terms' })
    const edited = await limit(0)
    assert.equal(edited.status, 200, edited.text)
    assert.equal(await over(), 0)
    await Promise.all([maintain(), maintain()])
    await maintain()
    assert.equal(await over(), 5_500)
    const { counts } = await db.read(readAttention)
    assert.equal(counts.over_plan, 1_000, 'the count stops')
    await limit(1)
    await maintain()
    assert.equal(await over(), 0)
    assert.equal((await database.query('select from control.plan_rechecks')).length, 0)
  })
})
