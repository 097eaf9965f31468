import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuid7 } from '../../../platform/ids.ts'
import { insertProjects } from '../../../testing/fixtures/project-rows.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { VirtualTime } from '../../../testing/harness/virtual-time.ts'
import { countSending, type SendingCount } from '../../mail/counters/counters.ts'
import { endExpired } from '../interventions/expiry.ts'
import { endIntervention, listInForce, startIntervention } from '../interventions/interventions.ts'
import { lockProject } from '../projects/projects.ts'
import { backtestPolicy } from './backtest.ts'
import { listAllPolicies, policyConfig } from './policies.ts'
import { runPolicies } from './run-policies.ts'

/**
 * A week of mail, bounces, complaints and interventions, made from a seed. It is counted and evaluated live in virtual time.
 * Afterwards, the backtest of each policy must have the same firings with the same figures.
 *
 * The full form has 1,000 projects and 200,000 messages: `npm run prove:policies`.
 */
const messages = Number(process.env['POSTERN_TEST_CASES'] ?? 6_000)
const isFull = messages >= 100_000
const [projectCount, hours] = isFull ? [1_000, 7 * 24] : [60, 10]
const buckets = hours * 12
const chance = new Chance(seed)

const database = await testDatabase()
const time = new VirtualTime(database)

/** A twentieth of the projects sends three quarters of the mail. */
interface Project {
  id: number
  share: number
  bounces: number
  complaints: number
  failures: number
}

const makeProjects = (ids: readonly number[]): Project[] =>
  ids.map((id, index) => {
    const isLarge = index < ids.length / 20
    // One kind of fault for each third of the projects, so that no policy hides the firings of another.
    const fault = index % 3
    return {
      id,
      share: isLarge ? 0.75 / (ids.length / 20) : 0.25 / (ids.length * 0.95),
      bounces: fault === 0 ? chance.pick([0.12, 0.3]) : 0.01,
      complaints: fault === 1 ? chance.pick([0.05, 0.2]) : 0,
      failures: fault === 2 ? chance.pick([0.15, 0.3]) : 0.01,
    }
  })

/** Lower volumes and shorter times than the shipped policies, so that all of these fire. */
async function addPolicies(): Promise<void> {
  const rows = [
    ['failures', 'failure_rate', 120, 5, 10, 'warn', null, 30, 60],
    ['suppressed', 'suppressed_rate', 120, 5, 10, 'warn', null, 30, 120],
    ['spike', 'volume_spike', 30, 3, 10, 'pace', 20, 45, 30],
    ['score', 'score', 10080, 80, 50, 'hold', null, 60, 90],
    ['bounces', 'bounce_rate', 120, 5, 10, 'lock', null, 90, 60],
    ['complaints', 'complaint_rate', 240, 0.2, 10, 'pace', 50, 60, 60],
  ]
  for (const row of rows) {
    await database.query(
      `insert into control.policies (name, mode, signal, window_minutes, threshold, minimum_volume, kind, pace_per_hour,
                                     duration_minutes, cooldown_minutes)
       values ($1, 'enforce', $2, $3, $4, $5, $6, $7, $8, $9)`,
      row,
    )
  }
}

/** Counts that are due in later buckets, by the number of the bucket. */
const later = new Map<number, SendingCount[]>()
const schedule = (bucket: number, count: SendingCount) =>
  void later.set(bucket, [...(later.get(bucket) ?? []), count])
const delay = (atMost: number) => chance.below(atMost)

/** One message: handed over now, with its results within the next hours. */
function send({ id: projectId, bounces, complaints, failures }: Project, bucket: number): void {
  const messageId = uuid7(time.at.getTime() + chance.below(299_000))
  const about = { projectId, messageId }
  if (chance.happens(0.03)) {
    schedule(bucket, { ...about, suppressed: 1 })
    return
  }
  if (chance.happens(failures)) {
    schedule(bucket + delay(6), { ...about, failed: 1, rejected: 1, isExcluded: chance.happens(0.3) })
    return
  }
  schedule(bucket, { ...about, sent: 1 })
  if (chance.happens(bounces)) {
    schedule(bucket + delay(30), { ...about, bounced: 1 })
    return
  }
  const delivered = bucket + delay(4)
  schedule(delivered, { ...about, delivered: 1 })
  if (chance.happens(complaints)) schedule(delivered + delay(20), { ...about, complained: 1 })
}

/** What administrators do themselves, at random. */
async function intervene({ id }: Project): Promise<void> {
  await time.db.transaction(async (tx) => {
    const project = await lockProject(tx, id)
    const [first] = await listInForce(tx, id)
    if (first) {
      await endIntervention(tx, project, first, 'administrator')
      return
    }
    const kind = chance.pick(['warn', 'pace', 'hold', 'lock'] as const)
    const expires_at = new Date(time.at.getTime() + (10 + chance.below(180)) * 60_000).toISOString()
    await startIntervention(tx, project, {
      ...{ kind, actorId: null, reason: 'By hand', expires_at, pace_per_hour: kind === 'pace' ? 10 : null },
    })
  })
}

const lockedIds = async (): Promise<Set<number>> =>
  new Set(
    (await database.query<{ id: number }>('select id::int from control.projects where is_locked')).map(
      ({ id }) => id,
    ),
  )

test('a recorded run has the same firings live and in the backtest', async (t) => {
  await addPolicies()
  await time.set(time.at)
  const projects = makeProjects(await insertProjects(database, projectCount))
  await runPolicies(time.deps)
  for (let bucket = 0; bucket < buckets; bucket++) {
    const locked = await lockedIds()
    for (const project of projects) {
      const mean = (messages / buckets) * project.share
      // Projects send in bursts.
      const burst = chance.happens(0.1) ? chance.below(Math.ceil(mean * 20) + 1) : 0
      if (!locked.has(project.id)) for (let n = 0; n < burst; n++) send(project, bucket)
    }
    const all = later.get(bucket) ?? []
    later.delete(bucket)
    // Interventions start and end between the two parts.
    const counts = all.filter((_, n) => n % 2 === 0)
    const afterwards = all.filter((_, n) => n % 2 === 1)
    if (counts.length > 0) await time.mail.transaction((tx) => countSending(tx, counts))
    await time.pass(2)
    if (chance.happens(0.3)) await intervene(chance.pick(projects))
    await endExpired(time.db)
    await time.pass(1)
    if (afterwards.length > 0) await time.mail.transaction((tx) => countSending(tx, afterwards))
    await time.pass(2)
    // The bucket is evaluated during the next one.
    await time.pass(1.5)
    await runPolicies(time.deps)
    await time.pass(-1.5)
  }
  await time.pass(1.5)
  const live = await database.query<{
    policy_id: number
    project_id: number
    at: Date
    value: number
    counted: number
    baseline: number
  }>(
    'select policy_id::int, project_id::int, at, value, counted::int, baseline from control.firings order by at, project_id',
  )
  const deps = { db: time.db, mailDbFor: () => time.mail }
  let compared = 0
  for (const row of await time.db.read(listAllPolicies)) {
    const {
      firings,
      firing_count: fired,
      is_complete,
    } = await backtestPolicy(deps, policyConfig(row), Math.ceil(hours / 24) + 1)
    assert.equal(is_complete, true)
    const found = firings.map(({ project_id, at, value, counted, baseline }) => ({
      project_id,
      at,
      value,
      counted,
      baseline,
    }))
    const expected = live
      .filter(({ policy_id }) => policy_id === row.id)
      .map(({ policy_id: _, at, ...firing }) => ({ ...firing, at: at.toISOString() }))
    assert.deepEqual(inOrder(found), inOrder(expected.slice(0, 1_000)), `policy ${row.name}, seed ${seed}`)
    assert.equal(fired, expected.length)
    compared += fired
    if (row.mode === 'enforce') assert.ok(fired > 0, `${row.name} did not fire, seed ${seed}`)
    t.diagnostic(`${row.name}: ${fired} firings`)
  }
  t.diagnostic(`${compared} firings, differences 0, seed ${seed}`)
})

const inOrder = <Firing extends { at: string; project_id: number }>(firings: readonly Firing[]): Firing[] =>
  firings.toSorted(
    (one, other) => (one.at < other.at ? -1 : Number(one.at > other.at)) || one.project_id - other.project_id,
  )
