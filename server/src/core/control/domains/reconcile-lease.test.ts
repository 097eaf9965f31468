import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  assertAliases,
  deedsOf,
  identitiesOf,
  startReconcileHarness,
  watched,
} from '../../../testing/harness/reconcile-harness.ts'
import { findKey, lease, lockByKey, markRegistered, markRetired, release } from './identities.sql.ts'
import { type ReconcileDeps, reconcileDue, reconcileIdentity } from './reconcile-identities.ts'

const { database, admin, peer, deps, make, after } = await startReconcileHarness()
const { id: project } = await make.makeProject()

const at = (domain: { project_id: number; id: number }) =>
  `/projects/${domain.project_id}/domains/${domain.id}`
const states = async (name: string) => (await identitiesOf(database, name)).map(({ state }) => state)

describe('the lease on a name', () => {
  test('lets one of many workers call the provider', async () => {
    const domain = await make.makeDomain(project)
    peer.hooks.onRequest = () => sleep(100)
    const { deps: seen, most } = watched(deps)
    await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        n % 2 === 0 ? reconcileIdentity(seen, domain.identity.id) : reconcileDue(seen, 100),
      ),
    )
    peer.hooks.onRequest = () => {}
    assert.equal(most(), 1)
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
    assert.equal(peer.calls.filter((call) => call.domain === domain.name).length, 1)
  })

  test('expires after a crash, and another worker finishes', async () => {
    const domain = await make.makeDomain(project)
    const dead = { ...deps, db: { ...deps.db, read: deps.db.read.bind(deps.db) } } as ReconcileDeps
    let transactions = 0
    // Failing the second transaction simulates a crash after the call.
    dead.db.transaction = (work) => {
      if (++transactions > 1) throw new Error('dead')
      return deps.db.transaction(work)
    }
    const [before] = await database.query<{ now: string }>('select postern.now()::text as now')
    await assert.rejects(reconcileIdentity(dead, domain.identity.id), /dead/)
    assert.ok(peer.has(domain.name))
    const [leased] = await database.query(
      `select leased_until between $2::timestamptz + interval '1 minute' and postern.now() + interval '1 minute'
                as is_for_a_minute
         from control.identities where name = $1`,
      [domain.name, before?.now],
    )
    assert.deepEqual(leased, { is_for_a_minute: true })
    await reconcileIdentity(deps, domain.identity.id)
    assert.deepEqual(await states(domain.name), ['registering'], 'other workers are still excluded')
    await reconcileDue(await after('30 seconds'), 100)
    assert.deepEqual(await states(domain.name), ['registering'])
    await reconcileDue(await after('31 seconds'), 100)
    assert.deepEqual(await states(domain.name), ['registered'])
    assert.deepEqual(deedsOf(peer, domain.name), ['create'])
  })

  test('may expire before the provider acts, and the name is then registered again', async () => {
    const domain = await make.makeDomain(project)
    await reconcileIdentity(deps, domain.identity.id)
    await admin.delete(at(domain), { reason: 'Given up' })
    let again: Awaited<ReturnType<typeof make.makeDomain>> | undefined
    peer.hooks.onRequest = async ({ kind }) => {
      if (kind !== 'delete') return
      peer.hooks.onRequest = () => {}
      again = await make.makeDomain(project, { name: domain.name })
      await reconcileIdentity(await after('61 seconds'), again.identity.id)
      assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    }
    await reconcileIdentity(deps, domain.identity.id)
    assert.deepEqual(deedsOf(peer, domain.name), ['create', 'delete', 'create'])
    assert.deepEqual(await states(domain.name), ['retired', 'registered'])
    assertAliases(peer, (await admin.get(at(again ?? assert.fail()))).body)
  })

  test('prevents writes by the previous worker after it was reassigned', async () => {
    const domain = await make.makeDomain(project)
    peer.hooks.onRequest = async () => {
      peer.hooks.onRequest = () => {}
      // The second worker takes over, fails at the provider, and must retry in 5 seconds.
      peer.failNext('create', 'unavailable', 4)
      await reconcileIdentity(await after('61 seconds'), domain.identity.id)
    }
    const rows = () =>
      database.query('select * from control.identities where name = $1 order by id', [domain.name])
    let before: unknown[] = []
    const first = { ...deps, db: { ...deps.db, read: deps.db.read.bind(deps.db) } } as ReconcileDeps
    let transactions = 0
    first.db.transaction = async (work) => {
      if (++transactions === 2) before = await rows()
      if (transactions > 2) return undefined as never
      return deps.db.transaction(work)
    }
    await reconcileIdentity(first, domain.identity.id)
    assert.ok(before.length > 0 && transactions >= 2, 'the first worker resumed')
    assert.deepEqual(await rows(), before)
  })

  test('has a number, and a write with an earlier number changes no row', async () => {
    const domain = await make.makeDomain(project)
    const ids = [domain.identity.id]
    const first = await deps.db.transaction((tx) => lease(tx, ids, 60))
    const second = await deps.db.transaction((tx) => lease(tx, ids, 60))
    assert.ok(first < second)
    await deps.db.transaction(async (tx) => {
      const key = (await findKey(tx, domain.identity.id)) ?? assert.fail()
      const [row] = await lockByKey(tx, key)
      assert.equal(row?.lease_no, second)
      for (const write of [markRegistered, markRetired, release]) {
        assert.equal(await write(tx, ids, first), 0)
      }
      assert.equal(await release(tx, ids, second), 1)
    })
    assert.deepEqual(await states(domain.name), ['registering'])
  })
})
