import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { insertProjects } from '../../../testing/fixtures/project-rows.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { countSending, type SendingCount } from '../../mail/counters/counters.ts'
import { endExpired } from '../interventions/expiry.ts'
import { endIntervention, startIntervention } from '../interventions/interventions.ts'
import { lockProject } from '../projects/projects.ts'
import { enforceFirings } from './enforcement.ts'
import { evaluateNext } from './evaluation.ts'
import { runPolicies } from './run-policies.ts'

const database = await testDatabase()
const time = new VirtualTime(database)

/** The shipped policies have these ids. */
const [warning, pacing, locking] = [1, 2, 3]

const setMode = (mode: string, ...ids: number[]) =>
  database.query(
    `update control.policies set mode = $1, tripped_at = null, version = version + 1 where id = any($2)`,
    [mode, ids],
  )

const count = (counts: Omit<SendingCount, 'messageId'>[]) =>
  time.mail.transaction((tx) =>
    countSending(
      tx,
      counts.map((one) => ({ ...one, messageId: randomUUIDv7() })),
    ),
  )

/** Returns the number of buckets that it evaluated. */
async function evaluateAll({ deps, mail }: VirtualTime): Promise<number> {
  let evaluated = 0
  while (await evaluateNext(deps, { name: 'mail', mail })) evaluated++
  return evaluated
}

/** Ends the current five minutes and evaluates them. */
async function nextBucket(): Promise<void> {
  await time.pass(5)
  await time.pass(1.1)
  await runPolicies(time.deps)
  await time.pass(3.9)
}

const firings = () =>
  database.query<{ policy_id: number; project_id: number; outcome: string; value: number }>(
    `select policy_id::int, project_id::int, outcome, value from control.firings order by policy_id, project_id, at`,
  )

const interventions = () =>
  database.query<{
    project_id: number
    kind: string
    policy_id: number | null
    reason: string
    public_note: string
  }>(
    `select project_id::int, kind, policy_id::int, reason, public_note from control.interventions
      where ended_at is null order by id`,
  )

beforeEach(async () => {
  await database.query('delete from control.firings')
  await database.query(
    `update control.interventions set ended_at = postern.now(), ended_by = 'administrator' where ended_at is null`,
  )
  await database.query('delete from control.restriction_ends')
  await database.query('delete from mail.sending_counters')
  await setMode('shadow', 1, 2, 3, 4, 5, 6)
  await time.pass(60)
  await time.set(new Date(Math.ceil(time.at.getTime() / 300_000) * 300_000))
  await time.pass(1.1)
  await runPolicies(time.deps)
  await time.pass(3.9)
})

describe('evaluation of policies', () => {
  test('records a firing in shadow and changes nothing else', async () => {
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 1000, bounced: 120 }])
    await nextBucket()
    assert.deepEqual(
      (await firings()).map(({ policy_id, outcome, value }) => [policy_id, outcome, value]),
      [
        [warning, 'recorded', 12],
        [pacing, 'recorded', 12],
      ],
    )
    assert.deepEqual(await interventions(), [])
    await count([{ projectId: project, sent: 100, bounced: 50 }])
    await nextBucket()
    assert.equal((await firings()).length, 2, 'not again during the cooldown')
  })

  test('starts an intervention whose reason has the figures, by the policy', async () => {
    await setMode('enforce', warning, pacing, locking)
    const [project = 0, other = 0] = await insertProjects(database, 2)
    await count([
      { projectId: project, sent: 400, bounced: 100 },
      { projectId: other, sent: 400, bounced: 3 },
    ])
    await nextBucket()
    const [lock, ...rest] = await interventions()
    assert.deepEqual(rest, [])
    assert.deepEqual([lock?.project_id, lock?.kind, lock?.policy_id], [project, 'lock', locking])
    assert.match(
      lock?.reason ?? '',
      /^The bounce rate was 25 % \(100 of 400 recipients\) in the 60 minutes before .* UTC\. The threshold of the policy ".*" is 20 %\.$/,
    )
    assert.doesNotMatch(lock?.public_note ?? '', /25 %/)
    const [row] = await database.query<{ is_locked: boolean }>(
      'select is_locked from control.projects where id = $1',
      [project],
    )
    assert.equal(row?.is_locked, true)
    const audited = await database.query<{
      actor_kind: string
      actor_id: number
      operation: string
      reason: string
    }>('select actor_kind, actor_id::int, operation, reason from control.audit where project_id = $1', [
      project,
    ])
    assert.deepEqual(audited, [
      { actor_kind: 'policy', actor_id: locking, operation: 'interventions.create', reason: lock?.reason },
    ])

    await time.pass(24 * 60)
    await endExpired(time.db)
    assert.deepEqual(await interventions(), [])
    // Late reports about mail that was accepted before the end.
    await count([{ projectId: project, bounced: 300 }])
    await nextBucket()
    assert.deepEqual(await interventions(), [])
  })

  test('evaluates every bucket once, whatever the number of workers', async () => {
    await setMode('enforce', locking)
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 400, bounced: 100 }])
    await time.pass(6.1)
    const others = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const other = new VirtualTime(database)
        await other.set(time.at)
        return other
      }),
    )
    const evaluated = await Promise.all(others.map(evaluateAll))
    assert.equal(
      evaluated.reduce((sum, one) => sum + one, 0),
      2,
    )
    const started = await Promise.all(others.map(({ db }) => enforceFirings(db)))
    assert.equal(
      started.reduce((sum, one) => sum + one, 0),
      1,
    )
    assert.equal((await interventions()).length, 1)
  })

  test('does not enforce a firing whose policy was turned off in between', async () => {
    await setMode('enforce', locking)
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 400, bounced: 100 }])
    await time.pass(6.1)
    assert.equal(await evaluateAll(time), 2)
    assert.deepEqual((await firings()).map(({ outcome }) => outcome).toSorted(), ['pending'])
    await setMode('off', locking)
    assert.equal(await enforceFirings(time.db), 0)
    assert.deepEqual(
      (await firings()).map(({ outcome }) => outcome),
      ['skipped'],
    )
    assert.deepEqual(await interventions(), [])
  })

  test('a source of reports that reports all mail as bounced trips the breaker after five projects', async () => {
    await setMode('enforce', locking)
    const projects = await insertProjects(database, 40)
    await count(projects.map((projectId) => ({ projectId, sent: 400, bounced: 400 })))
    await nextBucket()
    const outcomes = (await firings())
      .filter(({ policy_id }) => policy_id === locking)
      .map(({ outcome }) => outcome)
    assert.deepEqual([outcomes.filter((one) => one === 'enforced').length, outcomes.length], [5, 40])
    assert.equal((await interventions()).length, 5)
    const [policy] = await database.query<{ mode: string; tripped_at: Date }>(
      'select mode, tripped_at from control.policies where id = $1',
      [locking],
    )
    assert.equal(policy?.mode, 'shadow')
    assert.ok(policy?.tripped_at)
    const audited = await database.query<{ actor_kind: string }>(
      `select actor_kind from control.audit where operation = 'policies.trip'`,
    )
    assert.deepEqual(audited, [{ actor_kind: 'system' }])

    await count(projects.map((projectId) => ({ projectId, sent: 400, bounced: 400 })))
    await nextBucket()
    assert.equal((await interventions()).length, 5)
  })

  test('with more active projects, the breaker allows one percent, over several buckets', async () => {
    await setMode('enforce', locking)
    const projects = await insertProjects(database, 700)
    await count(projects.map((projectId) => ({ projectId, sent: 1 })))
    await nextBucket()
    for (const part of [projects.slice(0, 4), projects.slice(4, 7), projects.slice(7, 9)]) {
      await count(part.map((projectId) => ({ projectId, sent: 400, bounced: 400 })))
      await nextBucket()
    }
    assert.equal((await interventions()).length, 7)
    const outcomes = (await firings())
      .filter(({ policy_id }) => policy_id === locking)
      .map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, [...Array(7).fill('enforced'), 'recorded', 'recorded'])
  })

  test('after a long interruption, only the last 24 hours are evaluated', async () => {
    const [early = 0, late = 0] = await insertProjects(database, 2)
    await count([{ projectId: early, sent: 1000, bounced: 120 }])
    await time.pass(3 * 60)
    await count([{ projectId: late, sent: 1000, bounced: 120 }])
    await time.pass(23 * 60)
    await runPolicies(time.deps)
    assert.deepEqual(
      (await firings()).map(({ policy_id, project_id }) => [policy_id, project_id]),
      [
        [warning, late],
        [pacing, late],
      ],
    )
  })

  test('an interruption does not multiply what the breaker allows', async () => {
    await setMode('enforce', locking)
    const projects = await insertProjects(database, 30)
    for (let hour = 0; hour < 10; hour++) {
      const part = projects.slice(hour * 3, hour * 3 + 3)
      await count(part.map((projectId) => ({ projectId, sent: 400, bounced: 400 })))
      await time.pass(60)
    }
    await runPolicies(time.deps)
    assert.equal((await interventions()).length, 5)
  })

  test('a firing of an edited policy is not enforced', async () => {
    await setMode('enforce', warning)
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 1000, bounced: 60 }])
    await time.pass(6.1)
    await evaluateAll(time)
    await database.query(
      `update control.policies set kind = 'lock', threshold = 30, version = version + 1 where id = $1`,
      [warning],
    )
    await enforceFirings(time.db)
    await database.query(`update control.policies set kind = 'warn', threshold = 5 where id = $1`, [warning])
    assert.deepEqual(await interventions(), [])
  })

  test('late bounces are not a volume of their own', async () => {
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 20_000, delivered: 19_700 }])
    await time.pass(120)
    await count([{ projectId: project, bounced: 300 }])
    await nextBucket()
    assert.deepEqual(await firings(), [])
  })

  test('does not fire in the bucket in which an administrator ends a lock', async () => {
    await setMode('enforce', locking)
    const [project = 0] = await insertProjects(database, 1)
    await count([{ projectId: project, sent: 400, bounced: 60 }])
    const lock = await time.db.transaction(async (tx) =>
      startIntervention(tx, await lockProject(tx, project), {
        ...{ kind: 'lock', actorId: null, reason: 'By hand' },
      }),
    )
    await time.pass(6)
    await count([{ projectId: project, bounced: 60 }])
    await time.db.transaction(async (tx) =>
      endIntervention(tx, await lockProject(tx, project), lock.row, 'administrator'),
    )
    await nextBucket()
    assert.deepEqual(await interventions(), [])
  })
})
