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

/** What happens to a domain while a check of several seconds is running. */
const world = await startWorld()
const { ses, publish, withdraw } = world
const stage = await startStage(world)
const { admin, database, deps, rows, check, show, verification, makeRegistered, pathOf } = stage

const dueAt = async ({ id }: Domain): Promise<string> => {
  const [row] = await database.query<{ due: string }>(
    'select coalesce(next_check_at::text, $2) as due from control.domains where id = $1',
    [id, 'never'],
  )
  return row?.due ?? assert.fail('there is no such domain')
}

const isDue = async ({ id }: Domain): Promise<boolean> => {
  const [row] = await database.query<{ is_due: boolean }>(
    'select next_check_at <= postern.now() as is_due from control.domains where id = $1',
    [id],
  )
  return row?.is_due ?? assert.fail('there is no such domain')
}

/** A resolver that is asked, and answers once it is released. */
function heldResolver() {
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = (ask: (name: string) => Promise<Lookup>) => async (name: string) => {
    asked.resolve()
    await released.promise
    return ask(name)
  }
  const dns = Object.fromEntries(Object.entries(deps.dns).map(([type, ask]) => [type, held(ask)]))
  return { dns: dns as unknown as Resolver, asked: asked.promise, release: () => released.resolve() }
}

/** Something that happens while a check waits for the DNS; the check ends after it. */
async function duringLook<T>(domain: Domain, work: () => Promise<T>): Promise<T> {
  await database.query(`update control.domains set next_check_at = '-infinity' where id = $1`, [domain.id])
  const { dns, asked, release } = heldResolver()
  const looking = checkDomain({ ...deps, dns }, domain.project_id, domain.id)
  try {
    await Promise.race([asked, looking])
    return await work()
  } finally {
    release()
    await looking
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

describe('a check at a domain', () => {
  test('that was edited meanwhile is not written down', async () => {
    for (const body of [{ mta_provider: 'service' }, { name: 'meanwhile.example.com' }]) {
      const domain = await makePublished()
      const edited = await duringLook(domain, async () => (await admin.patch(pathOf(domain), body)).body)
      assert.deepEqual(await show(domain), edited)
      assert.deepEqual(
        [edited.status, edited.last_checked_at, recordStatuses(edited)['ownership']],
        ['pending', null, 'pending'],
      )
      assert.equal(await dueAt(domain), 'never', 'it is due once the new identity is registered')
    }
  })

  test('that was deleted meanwhile is forgotten', async () => {
    const domain = await makePublished()
    await duringLook(domain, () => admin.delete(pathOf(domain), { reason: 'Gone' }))
    assert.equal((await admin.get(pathOf(domain))).status, 404)
  })

  test('whose only key was replaced meanwhile does not verify it by the old one', async () => {
    const domain = await makePublished()
    const rotate = () => admin.post(`${pathOf(domain)}/rotate`, { reason: 'Second thoughts' })
    const { resource } = (await duringLook(domain, rotate)).body
    const after = await show(domain)
    assert.deepEqual([after.status, after.dns_records], ['pending', resource.dns_records])
    const [key] = await rows.keys(domain.identity.id)
    assert.equal(key?.state, 'pending')
    assert.ok(await isDue(domain), 'the next check is due')
  })

  test('whose new key was replaced meanwhile does not miss the one before it', async () => {
    const domain = await makeVerified()
    const rotate = () => admin.post(`${pathOf(domain)}/rotate`, { reason: 'Twice' })
    await rotate()
    await duringLook(domain, rotate)
    const after = await show(domain)
    assert.deepEqual([after.status, after.last_check_error], ['verified', null])
    assert.equal((await verification(domain)).is_failing, false)
  })

  test('that somebody asks for meanwhile is taken again', async () => {
    const domain = await makeRegistered('service')
    await duringLook(domain, () => admin.post(`${pathOf(domain)}/verify`))
    assert.ok(await isDue(domain))
    await publish(...domain.dns_records)
    await checkDomain(deps, domain.project_id, domain.id)
    assert.equal((await show(domain)).status, 'verified')
  })

  test('is taken by one process at a time', async () => {
    const domain = await makePublished()
    const before = ses.calls.length
    await database.query(`update control.domains set next_check_at = '-infinity' where id = $1`, [domain.id])
    await Promise.all(Array.from({ length: 8 }, () => checkDomain(deps, domain.project_id, domain.id)))
    const after = await show(domain)
    assert.equal(after.status, 'verified')
    assert.equal((await verification(domain)).checks_failed, 0)
    assert.equal(ses.calls.length, before)
  })

  test('whose process died is taken again once its lease has ended', async () => {
    const on = await startStage(world)
    const domain = await on.makeRegistered('service')
    await publish(...domain.dns_records)
    // As a process leaves it that dies in the middle of a check.
    const dying = { ...on.deps, dns: { ...on.deps.dns, txt: () => Promise.reject(new Error('killed')) } }
    assert.equal((await on.check(domain, dying)).last_checked_at, null)
    assert.match(on.errors().join(''), /a domain could not be checked/)
    await checkDomain(await on.later('110 seconds'), domain.project_id, domain.id)
    assert.equal((await on.show(domain)).last_checked_at, null)
    await checkDomain(await on.later('130 seconds'), domain.project_id, domain.id)
    assert.equal((await on.show(domain)).status, 'verified')
  })
})

describe('no transaction is open', () => {
  /** Those of the application that have begun and not ended, as the database sees them. */
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

  /** SES has the request of this kind, and answers it only then. */
  async function assertNoneDuring(kind: 'create' | 'get' | 'delete', work: () => Promise<unknown>) {
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    ses.hooks.onRequest = (call) => {
      if (call.kind !== kind) return
      asked.resolve()
      return released.promise
    }
    const working = work()
    try {
      await Promise.race([asked.promise, working.then(() => assert.fail(`there was no ${kind}`))])
      await assertNone()
    } finally {
      delete ses.hooks.onRequest
      released.resolve()
    }
    await working
  }

  test('while the DNS hangs', async () => {
    await duringLook(await makePublished(), assertNone)
  })

  test('while SES is slow with a check', async () => {
    const domain = await makeRegistered('ses')
    await assertNoneDuring('get', () => check(domain))
  })

  test('while SES is slow with a registration, and a deregistration', async () => {
    const project = await stage.makeProject()
    const domain = await stage.makeDomain(project.id)
    await assertNoneDuring('create', () => reconcileIdentity(deps, domain.identity.id))
    await admin.delete(pathOf(domain), { reason: 'Gone' })
    await assertNoneDuring('delete', () => reconcileIdentity(deps, domain.identity.id))
    assert.equal(ses.has(domain.name), false)
  })
})

test('a key that is seen, and gone again before the next check, stays in use for the three days', async () => {
  const domain = await makeVerified()
  await withdraw(recordOf(domain, 'dkim'))
  const missing = await check(domain)
  assert.deepEqual([missing.status, recordsOf(missing, 'dkim')[0]?.status], ['verified', 'failed'])
  assert.equal((await rows.keys(domain.identity.id))[0]?.state, 'active')
})

test('nothing went wrong that was only logged', () => assert.deepEqual(stage.errors(), []))
