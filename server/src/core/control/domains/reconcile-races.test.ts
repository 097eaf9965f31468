import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Chance, seed } from '../../../testing/harness/random.ts'
import {
  assertAliases,
  namesAt,
  startReconcileHarness,
  watched,
} from '../../../testing/harness/reconcile-harness.ts'
import { type ReconcileDeps, reconcileIdentity } from './reconcile-identities.ts'

/**
 * Concurrent edits and workers: at most one worker at a time calls the provider about a name, no name is deregistered while
 * a domain uses it, and at the end exactly the domains' names are registered with the provider.
 */
const edits = Number(process.env['POSTERN_TEST_EDITS'] ?? 200)

const { database, admin, peer, deps, make } = await startReconcileHarness()

const at = (domain: { project_id: number; id: number }) =>
  `/projects/${domain.project_id}/domains/${domain.id}`

describe('concurrent edits and workers', () => {
  test(`after ${edits} random edits exactly the live names are registered with the provider (seed ${seed})`, async (t) => {
    const chance = new Chance(seed)
    const world = await makeWorld()
    const taken: string[] = []
    peer.hooks.onRequest = () => sleep(chance.below(15))
    peer.hooks.onEffect = async ({ kind, domain }) => {
      if (kind === 'delete' && (await isRegisteredAndLiving(domain))) taken.push(domain)
      await sleep(chance.below(15))
    }
    const deadlocks = await countDeadlocks()
    const { deps: seen, most } = watched(deps)
    const raced = () => peer.deeds.filter(({ domain }) => domain.startsWith('race'))
    const isEnough = () => raced().length > edits / 10
    let left = edits
    // On a busy machine many edits are superseded before a worker calls the provider.
    const editors = Array.from({ length: 4 }, async () => {
      while (left-- > 0 || (!isEnough() && left > -5 * edits)) await world.change(chance)
    })
    let isOver = false
    const workers = Array.from({ length: 6 }, async () => {
      while (!isOver) await settleSome(seen, chance)
    })
    await Promise.all(editors)
    isOver = true
    await Promise.all(workers)
    await settleAll(seen)
    peer.hooks.onRequest = () => {}
    peer.hooks.onEffect = () => {}

    report(t, { ...world.tally, calls: peer.calls.length, effective: raced().length })
    assert.deepEqual(taken, [], 'names of live domains were deregistered')
    assert.equal(most(), 1, 'two workers called the provider about one name')
    assert.equal((await countDeadlocks()) - deadlocks, 0, 'deadlocks')
    assert.deepEqual(
      namesAt(peer).filter((name) => name.startsWith('race')),
      await livingNames(),
    )
    assert.deepEqual(await unsettled(), [])
    for (const domain of await world.domains()) {
      if (domain.mta_provider === 'ses') assertAliases(peer, domain)
    }
    assert.ok(isEnough(), 'too few provider calls for a meaningful test')
  })
})

const report = (t: TestContext, figures: object) => t.diagnostic(JSON.stringify(figures))

/** Three projects that use the same few names. */
async function makeWorld() {
  const projects: number[] = []
  for (let n = 0; n < 3; n++) projects.push((await make.makeProject()).id)
  for (const id of projects) await make.allowServiceMta(id)
  const names = Array.from({ length: 5 }, (_, n) => `race${n}.example.org`)
  const tally = { done: 0, refused: 0 }
  const domains = async () => {
    const lists = await Promise.all(projects.map((id) => admin.get(`/projects/${id}/domains`)))
    return lists.flatMap(({ body }) => body.data)
  }
  const note = ({ status, text }: { status: number; text: string }) => {
    assert.ok(status < 500, text)
    if (status < 300) tally.done++
    else tally.refused++
  }
  return {
    tally,
    domains,
    async change(chance: Chance): Promise<void> {
      const mta_provider = chance.happens(0.1) ? 'service' : 'ses'
      const present = await domains()
      const dice = chance.next()
      if (present.length === 0 || dice < 0.2) {
        const body = { name: chance.pick(names), mta_provider }
        note(await admin.post(`/projects/${chance.pick(projects)}/domains`, body))
      } else if (dice < 0.35) {
        note(await admin.delete(at(chance.pick(present)), { reason: 'By chance' }))
      } else {
        const domain = chance.pick(present)
        const name = chance.happens(0.2) ? domain.name : chance.pick(names)
        note(await admin.patch(at(domain), { name, mta_provider }))
      }
    },
  }
}

const faults = ['lose_request', 'lose_answer', 'internal', 'bad_request'] as const

async function settleSome(deps: ReconcileDeps, chance: Chance): Promise<void> {
  if (chance.happens(0.05)) peer.failNext(chance.pick(['create', 'delete']), chance.pick(faults), 2)
  const ids = await unsettled()
  if (ids.length === 0) return sleep(5)
  await reconcileIdentity(deps, chance.pick(ids).id)
}

async function settleAll(deps: ReconcileDeps): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const ids = await unsettled()
    if (ids.length === 0) return
    for (const { id } of ids) await reconcileIdentity(deps, id)
  }
}

const unsettled = () =>
  database.query<{ id: number }>(
    `select id::int, name, state, leased_until from control.identities where name like 'race%'
      and (state not in ('registered', 'retired') or leased_until is not null or reconcile_at is not null) order by id`,
  )

const isRegisteredAndLiving = async (name: string): Promise<boolean> =>
  (
    await database.query(
      `select from control.identities
        where name = $1 and provider = 'ses' and state = 'registered' and retiring_at is null`,
      [name],
    )
  ).length > 0

const livingNames = async (): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      `select distinct name from control.identities
        where name like 'race%' and provider = 'ses' and retiring_at is null order by name`,
    )
  ).map(({ name }) => name)

const countDeadlocks = async (): Promise<number> => {
  const [row] = await database.query<{ deadlocks: number }>(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  )
  return row?.deadlocks ?? 0
}
