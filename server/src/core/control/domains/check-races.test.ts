import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lookup, Resolver } from '../../../platform/net/dns.ts'
import {
  type Domain,
  recordOf,
  recordStatuses,
  recordsOf,
  startStage,
  startWorld,
} from '../../../testing/harness/verification-harness.ts'
import { checkDomain } from './check.ts'
import { reconcileIdentity } from './reconcile-identities.ts'

/** Changes to a domain during a check that takes several seconds. */
const world = await startWorld()
const { ses, publish, withdraw } = world
const stage = await startStage(world)
const { admin, database, deps, rows, check, show, verification, makeRegistered, pathOf } = stage

const dueAt = async ({ id }: Domain): Promise<string> => {
  const [row] = await database.query<{ due: string }>(
    'select coalesce(next_check_at::text, $2) as due from control.domains where id = $1',
    [id, 'never'],
  )
  return row?.due ?? assert.fail('domain not found')
}

const isDue = async ({ id }: Domain): Promise<boolean> => {
  const [row] = await database.query<{ is_due: boolean }>(
    'select next_check_at <= postern.now() as is_due from control.domains where id = $1',
    [id],
  )
  return row?.is_due ?? assert.fail('domain not found')
}

/** A resolver that responds only after it is released. */
function heldResolver() {
  const [queried, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = (ask: (name: string) => Promise<Lookup>) => async (name: string) => {
    queried.resolve()
    await released.promise
    return ask(name)
  }
  const dns = Object.fromEntries(Object.entries(deps.dns).map(([type, ask]) => [type, held(ask)]))
  return { dns: dns as unknown as Resolver, queried: queried.promise, release: () => released.resolve() }
}

/** Runs a change while a check waits for DNS, then lets the check finish. */
async function duringCheck<T>(domain: Domain, work: () => Promise<T>): Promise<T> {
  await database.query(`update control.domains set next_check_at = '-infinity' where id = $1`, [domain.id])
  const { dns, queried, release } = heldResolver()
  const checking = checkDomain({ ...deps, dns }, domain.project_id, domain.id)
  try {
    await Promise.race([queried, checking])
    return await work()
  } finally {
    release()
    await checking
  }
}

async function makePublished(): Promise<Domain> {
  const domain = await makeRegistered('service')
  await publish(...domain.dns_records)
  return domain
}

async function makeVerified(): Promise<Domain> {
  const domain = await makePublished()
  const verified = await check(domain)
  assert.equal(verified.status, 'verified')
  return verified
}

describe('a domain check', () => {
  test('discards its result if the domain was edited in the meantime', async () => {
    for (const body of [{ mta_provider: 'service' }, { name: 'meanwhile.example.com' }]) {
      const domain = await makePublished()
      const edited = await duringCheck(domain, async () => (await admin.patch(pathOf(domain), body)).body)
      assert.deepEqual(await show(domain), edited)
      assert.deepEqual(
        [edited.status, edited.last_checked_at, recordStatuses(edited)['ownership']],
        ['pending', null, 'pending'],
      )
      assert.equal(await dueAt(domain), 'never', 'due after the registration of the new identity')
    }
  })

  test('discards its result if the domain was deleted in the meantime', async () => {
    const domain = await makePublished()
    await duringCheck(domain, () => admin.delete(pathOf(domain), { reason: 'Gone' }))
    assert.equal((await admin.get(pathOf(domain))).status, 404)
  })

  test('does not verify the domain with a key that was replaced in the meantime', async () => {
    const domain = await makePublished()
    const rotate = () => admin.post(`${pathOf(domain)}/rotate`, { reason: 'Second thoughts' })
    const { resource } = (await duringCheck(domain, rotate)).body
    const after = await show(domain)
    assert.deepEqual([after.status, after.dns_records], ['pending', resource.dns_records])
    const [key] = await rows.keys(domain.identity.id)
    assert.equal(key?.state, 'pending')
    assert.ok(await isDue(domain), 'the next check is due')
  })

  test('does not require a pending key that was replaced in the meantime', async () => {
    const domain = await makeVerified()
    const rotate = () => admin.post(`${pathOf(domain)}/rotate`, { reason: 'Twice' })
    await rotate()
    await duringCheck(domain, rotate)
    const after = await show(domain)
    assert.deepEqual([after.status, after.last_check_error], ['verified', null])
    assert.equal((await verification(domain)).is_failing, false)
  })

  test('runs again if a check was requested in the meantime', async () => {
    const domain = await makeRegistered('service')
    await duringCheck(domain, () => admin.post(`${pathOf(domain)}/verify`))
    assert.ok(await isDue(domain))
    await publish(...domain.dns_records)
    await checkDomain(deps, domain.project_id, domain.id)
    assert.equal((await show(domain)).status, 'verified')
  })

  test('runs in only one process at a time', async () => {
    const domain = await makePublished()
    const before = ses.calls.length
    await database.query(`update control.domains set next_check_at = '-infinity' where id = $1`, [domain.id])
    await Promise.all(Array.from({ length: 8 }, () => checkDomain(deps, domain.project_id, domain.id)))
    const after = await show(domain)
    assert.equal(after.status, 'verified')
    assert.equal((await verification(domain)).checks_failed, 0)
    assert.equal(ses.calls.length, before)
  })

  test('runs again after the lease of a crashed process has expired', async () => {
    const on = await startStage(world)
    const domain = await on.makeRegistered('service')
    await publish(...domain.dns_records)
    // The state after a crash in the middle of a check.
    const dying = { ...on.deps, dns: { ...on.deps.dns, txt: () => Promise.reject(new Error('killed')) } }
    assert.equal((await on.check(domain, dying)).last_checked_at, null)
    assert.match(on.errors().join(''), /domain check failed/)
    await checkDomain(await on.later('110 seconds'), domain.project_id, domain.id)
    assert.equal((await on.show(domain)).last_checked_at, null)
    await checkDomain(await on.later('130 seconds'), domain.project_id, domain.id)
    assert.equal((await on.show(domain)).status, 'verified')
  })
})

describe('no transaction is open', () => {
  /** Open transactions of the application, according to the database. */
  const openTransactions = () =>
    database.query(
      `select state, query from pg_stat_activity
        where datname = current_database() and application_name = 'postern test' and xact_start is not null`,
    )

  async function assertNone(): Promise<void> {
    for (let checks = 0; checks < 5; checks++) {
      assert.deepEqual(await openTransactions(), [])
      await sleep(20)
    }
  }

  /** Runs the check while SES delays its response to this kind of request. */
  async function assertNoneDuring(kind: 'create' | 'get' | 'delete', work: () => Promise<unknown>) {
    const [queried, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    ses.hooks.onRequest = (call) => {
      if (call.kind !== kind) return
      queried.resolve()
      return released.promise
    }
    const working = work()
    try {
      await Promise.race([queried.promise, working.then(() => assert.fail(`no request of kind ${kind}`))])
      await assertNone()
    } finally {
      delete ses.hooks.onRequest
      released.resolve()
    }
    await working
  }

  test('while DNS does not respond', async () => {
    await duringCheck(await makePublished(), assertNone)
  })

  test('while SES responds slowly to a check', async () => {
    const domain = await makeRegistered('ses')
    await assertNoneDuring('get', () => check(domain))
  })

  test('while SES responds slowly to a registration or deregistration', async () => {
    const project = await stage.makeProject()
    const domain = await stage.makeDomain(project.id)
    await assertNoneDuring('create', () => reconcileIdentity(deps, domain.identity.id))
    await admin.delete(pathOf(domain), { reason: 'Gone' })
    await assertNoneDuring('delete', () => reconcileIdentity(deps, domain.identity.id))
    assert.equal(ses.has(domain.name), false)
  })
})

test('a key whose record disappears before the next check stays active for three days', async () => {
  const domain = await makeVerified()
  await withdraw(recordOf(domain, 'dkim'))
  const missing = await check(domain)
  assert.deepEqual([missing.status, recordsOf(missing, 'dkim')[0]?.status], ['verified', 'failed'])
  assert.equal((await rows.keys(domain.identity.id))[0]?.state, 'active')
})

test('no errors are logged', () => assert.deepEqual(stage.errors(), []))
