import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { describePoint, KillLane, type KillPoint, type Subject } from '../testing/harness/kill-lane.ts'
import { assertAliases, deedsOf, identitiesOf } from '../testing/harness/reconcile-harness.ts'
import { eventually } from '../testing/harness/waiting.ts'

/**
 * The process is killed at every point during a domain edit where a change becomes durable, in the database
 * or at the provider: before the change, after the change but before the response, and after the response.
 * After a restart, the process completes the edit.
 *
 * A run without a kill finds the points; then each point gets a separate run.
 */
interface Variant {
  name: string
  before: 'ses' | 'service'
  after: 'ses' | 'service'
  body: (subject: Subject) => { name?: string; mta_provider?: string; preserve_local_parts?: boolean }
}

const variants: Variant[] = [
  {
    name: 'a new name',
    before: 'ses',
    after: 'ses',
    body: ({ name }) => ({ name: `new-${name}`, preserve_local_parts: true }),
  },
  {
    name: 'a new name, and from the MTAs to SES',
    before: 'service',
    after: 'ses',
    body: ({ name }) => ({ name: `new-${name}`, mta_provider: 'ses', preserve_local_parts: true }),
  },
  {
    name: 'from SES to the MTAs',
    before: 'ses',
    after: 'service',
    body: () => ({ mta_provider: 'service' }),
  },
  {
    name: 'from the MTAs to SES',
    before: 'service',
    after: 'ses',
    body: () => ({ mta_provider: 'ses' }),
  },
  { name: 'the same name', before: 'ses', after: 'ses', body: ({ name }) => ({ name }) },
]

/**
 * `npm run prove:domains` runs all variants at all points. Otherwise the first variant runs at every third
 * point, from a random offset.
 */
const isWhole = process.env['POSTERN_TEST_KILLS'] === 'all'
const chosen = isWhole ? variants : variants.slice(0, 1)
const apart = isWhole ? 1 : 3
const laneCount = 2

const lanes = await Promise.all(Array.from({ length: laneCount }, () => KillLane.open()))

describe('a process that is killed during a domain edit', () => {
  for (const variant of chosen) {
    test(`loses nothing at any kill point: ${variant.name}`, async (t) => {
      await Promise.all(lanes.map((lane) => lane.start()))
      const [first = assert.fail()] = lanes
      const offset = randomInt(apart)
      const points = (await findPoints(first, variant)).filter((_, place) => place % apart === offset)
      for (const point of points) t.diagnostic(describePoint(point))
      let survived = 0
      const left = points.values()
      await Promise.all(
        lanes.map(async (lane) => {
          for (const point of left) {
            await dieAndRecover(lane, variant, point)
            survived++
          }
        }),
      )
      await Promise.all(lanes.map((lane) => lane.stop()))
      t.diagnostic(`${survived} of ${points.length} kill points survived: ${variant.name}`)
      assert.equal(survived, points.length)
    })
  }
})

async function findPoints(lane: KillLane, variant: Variant): Promise<KillPoint[]> {
  const [subject = assert.fail()] = await lane.prepare(1, variant.before)
  lane.watch()
  const answer = await lane.edit(subject, variant.body(subject))
  assert.equal(answer?.status, 200, answer?.text)
  await finished(lane, subject)
  // The jobs are marked as completed as well.
  await eventually('its jobs are completed', async () => !(await lane.hasJobs(`state <> 'completed'`)))
  await sleep(100)
  const points = [...lane.passed]
  await assertDone(lane, variant, subject)
  assert.ok(points.length > 10, 'points are missing')
  return points
}

async function dieAndRecover(lane: KillLane, variant: Variant, point: KillPoint): Promise<void> {
  const [subject = assert.fail()] = await lane.prepare(1, variant.before)
  const body = variant.body(subject)
  lane.watch(point)
  const answer = await lane.edit(subject, body)
  await lane.died()
  try {
    const rows = await auditRows(lane, subject)
    const isCommitted = await isChanged(lane, subject)
    assert.equal(rows, isCommitted ? 1 : 0, 'one audit row if the edit was committed, otherwise none')
    if (answer)
      assert.deepEqual([answer.status, isCommitted], [200, true], 'an acknowledged edit is committed')
    await lane.revive()
    if (!answer) {
      const again = await lane.edit(subject, body)
      assert.equal(again?.status, isCommitted ? 412 : 200, again?.text)
    }
    await finished(lane, subject)
    await assertDone(lane, variant, subject)
    await lane.forgetJobs()
  } catch (error) {
    throw new Error(`Killed at ${describePoint(point)}.\n${lane.log}`, { cause: error })
  }
}

/** Waits until every identity that the domain has had is in its final state. */
async function finished({ database }: KillLane, { id, name }: Subject): Promise<void> {
  await eventually('every identity of the domain is settled', async () => {
    const unsettled = await database.query(
      `select from control.identities where (domain_id = $1 or name = $2)
        and (state not in ('registered', 'retired') or leased_until is not null or reconcile_at is not null)`,
      [id, name],
    )
    return unsettled.length === 0
  })
}

async function auditRows({ database }: KillLane, { id }: Subject): Promise<number> {
  const rows = await database.query(
    `select from control.audit where operation = 'domains.edit' and resource_id = $1`,
    [id],
  )
  return rows.length
}

const isChanged = async ({ database }: KillLane, { id, etag }: Subject): Promise<boolean> =>
  (
    await database.query(`select from control.domains where id = $1 and '"' || version || '"' <> $2`, [
      id,
      etag,
    ])
  ).length > 0

async function assertDone(lane: KillLane, variant: Variant, subject: Subject): Promise<void> {
  const { database, peer } = lane
  const { name = subject.name, mta_provider = variant.before } = variant.body(subject)
  const admin = await lane.direct()
  const { body: domain } = await admin.get(`/projects/${subject.project_id}/domains/${subject.id}`)
  assert.deepEqual(
    [domain.name, domain.mta_provider, domain.status, domain.identity.state],
    [name, mta_provider, 'pending', 'registered'],
  )
  assert.equal(await auditRows(lane, subject), 1)
  if (variant.after === 'ses') assertAliases(peer, domain)

  const all = [
    ...new Map(
      [...(await identitiesOf(database, subject.name)), ...(await identitiesOf(database, name))].map(
        (one) => [one.id, one],
      ),
    ).values(),
  ]
  assert.deepEqual(
    all.map(({ id, state, is_living }) => [id === subject.identity.id, state, is_living]),
    [
      [true, 'retired', false],
      [false, 'registered', true],
    ],
  )
  const isKept = name === subject.name && variant.after === 'ses'
  if (variant.before === 'ses') {
    assert.deepEqual(deedsOf(peer, subject.name), isKept ? ['create'] : ['create', 'delete'])
    assert.equal(peer.has(subject.name), isKept)
  }
  if (variant.after === 'ses' && !(isKept && variant.before === 'ses')) {
    assert.deepEqual(deedsOf(peer, name), ['create'])
  }
  const keys = await database.query('select from control.dkim_keys where identity_id = $1', [
    subject.identity.id,
  ])
  assert.equal(keys.length, 0, 'the private keys of a retired identity are destroyed')
  await assertRoutes(lane, subject, name)
}

async function assertRoutes({ database }: KillLane, { id, name: oldName, routes }: Subject, name: string) {
  const rows = await database.query<{ id: number; address: string; version: number }>(
    `select id::int, address, version::int from control.routes
      where domain_id = $1 and match = 'address' order by id`,
    [id],
  )
  const version = name === oldName ? 1 : 2
  assert.deepEqual(
    rows,
    routes.map((route) => ({ id: route.id, address: route.address?.replace(oldName, name), version })),
  )
}
