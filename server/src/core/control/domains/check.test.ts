import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  needed,
  recordOf,
  recordStatuses,
  recordsOf,
  startStage,
  startWorld,
} from '../../../testing/harness/verification-harness.ts'
import { checkDomain, checkDue } from './check.ts'

/** Domain checks as DNS and provider responses change over time. claims.test.ts tests two projects with the same name. */
const world = await startWorld()
const { dns, ses, publish, withdraw } = world
const stage = await startStage(world)
const { admin, rows, check, show, reconcile, verification, makeRegistered, pathOf } = stage

const minute = 60
const hour = 60 * minute
const day = 24 * hour

/** Jitter adds up to a tenth. */
function assertAbout(actual: number | null, seconds: number): void {
  assert.ok(
    actual !== null && actual >= seconds - 1 && actual <= seconds * 1.1 + 1,
    `${actual}, not ${seconds}`,
  )
}

async function makeVerified(mta_provider: 'service' | 'ses' = 'service', on = stage) {
  const domain = await on.makeRegistered(mta_provider)
  await publish(...domain.dns_records)
  if (mta_provider === 'ses') ses.setDkim(domain.name, 'SUCCESS')
  const verified = await on.check(domain)
  assert.equal(verified.status, 'verified', verified.last_check_error ?? '')
  return verified
}

describe("a domain on the operator's MTAs", () => {
  test("is verified when all its records are published, and shows each record's status", async () => {
    const domain = await makeRegistered('service')
    assert.equal(domain.identity.state, 'registered')
    const none = await check(domain)
    assert.deepEqual([none.status, none.verified_at], ['pending', null])
    assert.deepEqual(recordStatuses(none), {
      ownership: 'pending',
      dkim: 'pending',
      return_path: 'pending',
      mx: 'pending',
      dmarc: 'pending',
    })
    assert.equal(
      none.last_check_error,
      needed(domain)
        .map(({ type, name }) => `The ${type} record ${name} was not found.`)
        .join(' '),
    )
    assert.ok(none.last_checked_at)

    await publish(recordOf(domain, 'ownership'))
    assert.equal(recordStatuses(await check(domain))['ownership'], 'verified')

    const wrong = { ...recordOf(domain, 'dkim'), value: 'v=DKIM1; k=rsa; p=AAAA' }
    await publish(wrong)
    const mistaken = await check(domain)
    assert.deepEqual([mistaken.status, recordStatuses(mistaken)['dkim']], ['pending', 'failed'])
    assert.match(mistaken.last_check_error ?? '', /_domainkey\.\S+ has a different value\./)
    await withdraw(wrong)
    await publish(recordOf(domain, 'dkim'))
    assert.equal(recordStatuses(await check(domain))['dkim'], 'verified')

    await publish(recordOf(domain, 'return_path'))
    const verified = await check(domain)
    assert.deepEqual([verified.status, verified.last_check_error], ['verified', null])
    assert.equal(verified.verified_at, verified.last_checked_at)
    assert.deepEqual(recordStatuses(verified), {
      ownership: 'verified',
      dkim: 'verified',
      return_path: 'verified',
      mx: 'pending',
      dmarc: 'pending',
    })
    const [key] = await rows.keys(domain.identity.id)
    assert.equal(key?.state, 'active')

    await publish(recordOf(domain, 'mx'), recordOf(domain, 'dmarc'))
    const whole = await check(domain)
    assert.ok(whole.dns_records.every(({ status }) => status === 'verified'))
    assert.equal(whole.verified_at, verified.verified_at, 'the time of verification stays')
    assert.equal(whole.updated_at, domain.updated_at, 'checks do not change the configuration')
    assert.equal((await admin.get(pathOf(domain))).headers.get('etag'), '"1"')
  })

  test('is checked with growing delays while records are missing, and only when due', async () => {
    const on = await startStage(world)
    const domain = await on.makeRegistered('service')
    let offset = 0
    for (let failed = 0; failed < 11; failed++) {
      const deps = await on.later(`${offset} seconds`)
      const before = (await on.show(domain)).last_checked_at
      await checkDomain(deps, domain.project_id, domain.id)
      const after = await on.show(domain)
      assert.notEqual(after.last_checked_at, before, `check ${failed} is due`)
      const { next_check_seconds, checks_failed } = await on.verification(domain)
      assertAbout(next_check_seconds, Math.min(2 ** failed * minute, 6 * hour))
      assert.equal(checks_failed, failed + 1)
      assert.equal(await checkDue(deps, 100), 0, 'nothing is due right after a check')
      await checkDomain(deps, domain.project_id, domain.id)
      assert.deepEqual(await on.show(domain), after)
      offset += Math.ceil(next_check_seconds ?? 0)
    }
    const nearlyThen = await on.later(`${offset - minute} seconds`)
    assert.equal(await checkDue(nearlyThen, 100), 0)
    assert.equal(await checkDue(await on.later(`${offset} seconds`), 100), 1)
  })

  test('fails after 14 days without its records, and is checked only on request after 30', async () => {
    const on = await startStage(world)
    const domain = await on.makeRegistered('service')
    assert.equal((await on.check(domain, await on.later('13 days 23 hours'))).status, 'pending')
    assert.equal((await on.check(domain, await on.later('14 days 1 minute'))).status, 'failed')
    assertAbout((await on.verification(domain)).next_check_seconds, day)
    const late = await on.later('31 days')
    assert.equal((await on.check(domain, late)).status, 'failed')
    assert.equal((await on.verification(domain)).next_check_seconds, null)
    assert.equal(await checkDue(await on.later('300 days'), 100), 0)

    await publish(...domain.dns_records)
    assert.equal((await on.admin.post(`${pathOf(domain)}/verify`)).status, 200)
    await checkDomain(await on.later('300 days'), domain.project_id, domain.id)
    const verified = await on.show(domain)
    assert.deepEqual([verified.status, verified.last_check_error], ['verified', null])
  })

  test('stays verified for three days without a record, then fails, and is verified again with the record', async () => {
    const on = await startStage(world)
    const domain = await makeVerified('service', on)
    assert.deepEqual((await on.verification(domain)).is_failing, false)
    assertAbout((await on.verification(domain)).next_check_seconds, day)

    const ownership = recordOf(domain, 'ownership')
    await withdraw(ownership)
    const missing = await on.check(domain)
    assert.deepEqual([missing.status, missing.verified_at], ['verified', domain.verified_at])
    assert.equal(recordStatuses(missing)['ownership'], 'failed')
    assert.match(missing.last_check_error ?? '', /_postern\.\S+ was not found\./)
    assert.equal((await on.verification(domain)).is_failing, true)
    assertAbout((await on.verification(domain)).next_check_seconds, hour)

    const stillThere = await on.check(domain, await on.later('2 days 23 hours'))
    assert.deepEqual([stillThere.status, stillThere.verified_at], ['verified', domain.verified_at])
    assertAbout((await on.verification(domain)).next_check_seconds, hour)

    const failed = await on.check(domain, await on.later('3 days 1 minute'))
    assert.deepEqual([failed.status, failed.verified_at], ['failed', null])
    assertAbout((await on.verification(domain)).next_check_seconds, day)

    await publish(ownership)
    const back = await on.check(domain, await on.later('5 days'))
    assert.deepEqual([back.status, back.last_check_error], ['verified', null])
    assert.ok(back.verified_at && domain.verified_at && back.verified_at > domain.verified_at)
    assert.deepEqual(await on.verification(domain), {
      ...(await on.verification(domain)),
      checks_failed: 0,
      is_failing: false,
    })
  })

  test('restarts the three days if the record reappeared in between', async () => {
    const on = await startStage(world)
    const domain = await makeVerified('service', on)
    const ownership = recordOf(domain, 'ownership')
    await withdraw(ownership)
    await on.check(domain)
    await publish(ownership)
    assert.equal((await on.check(domain, await on.later('2 days'))).last_check_error, null)
    await withdraw(ownership)
    await on.check(domain, await on.later('2 days 1 hour'))
    assert.equal((await on.check(domain, await on.later('4 days'))).status, 'verified')
    assert.equal((await on.check(domain, await on.later('5 days 2 hours'))).status, 'failed')
  })

  test('stays verified for 14 days of failed lookups, then fails', async () => {
    const on = await startStage(world)
    const domain = await makeVerified('service', on)
    const waiting = await on.makeRegistered('service')
    await on.check(waiting)
    await dns.breakZone('.')
    try {
      for (const offset of ['1 minute', '4 days', '13 days 23 hours']) {
        const deps = await on.later(offset)
        const { status, dns_records, last_check_error } = await on.check(domain, deps)
        assert.deepEqual([status, dns_records], ['verified', domain.dns_records])
        assert.match(last_check_error ?? '', /could not be looked up: .*SERVFAIL/)
        assert.equal((await on.verification(domain)).is_failing, false)
        assertAbout((await on.verification(domain)).next_check_seconds, hour)
        assert.equal((await on.check(waiting, deps)).status, 'pending')
      }
      const deps = await on.later('14 days 2 minutes')
      const { status, verified_at, dns_records } = await on.check(domain, deps)
      assert.deepEqual([status, verified_at, dns_records], ['failed', null, domain.dns_records])
      assertAbout((await on.verification(domain)).next_check_seconds, day)
      assert.equal((await on.check(waiting, deps)).status, 'pending')
    } finally {
      await publish()
    }
    const back = await on.check(domain, await on.later('41 days'))
    assert.deepEqual([back.status, back.last_check_error], ['verified', null])
  })

  test('restarts the 14 days if a lookup succeeded in between', async () => {
    const on = await startStage(world)
    const domain = await makeVerified('service', on)
    await dns.breakZone('.')
    await on.check(domain)
    await publish()
    await on.check(domain, await on.later('10 days'))
    await dns.breakZone('.')
    try {
      await on.check(domain, await on.later('11 days'))
      assert.equal((await on.check(domain, await on.later('24 days 23 hours'))).status, 'verified')
      assert.equal((await on.check(domain, await on.later('25 days 1 hour'))).status, 'failed')
    } finally {
      await publish()
    }
  })

  test('does not change its status while DNS does not respond', async () => {
    const domain = await makeVerified()
    await dns.pause()
    try {
      const { status, dns_records, last_check_error } = await check(domain)
      assert.deepEqual([status, dns_records], ['verified', domain.dns_records])
      assert.match(last_check_error ?? '', /no DNS server answered in time/)
      assert.equal((await verification(domain)).is_failing, false)
    } finally {
      dns.resume()
    }
    assert.equal((await check(domain)).last_check_error, null)
  })
})

describe('a rotated DKIM key', () => {
  test('becomes active when DNS has its record, and the old key is deleted and no longer required', async () => {
    const before = await makeVerified()
    const { resource } = (await admin.post(`${pathOf(before)}/rotate`, { reason: 'Yearly' })).body
    const [present, fresh] = recordsOf(resource, 'dkim')
    assert.ok(present && fresh)

    const waiting = await check(before)
    assert.deepEqual([waiting.status, waiting.last_check_error], ['verified', null])
    assert.equal(waiting.identity.selector, before.identity.selector)
    assert.deepEqual(
      recordsOf(waiting, 'dkim').map(({ status }) => status),
      ['verified', 'pending'],
    )
    assertAbout((await verification(before)).next_check_seconds, hour)
    assert.deepEqual(
      (await rows.keys(before.identity.id)).map(({ state }) => state),
      ['active', 'pending'],
    )

    await publish(fresh)
    const after = await check(before)
    assert.deepEqual([after.status, after.last_check_error], ['verified', null])
    assert.equal(after.identity.selector, fresh.name.split('.')[0])
    assert.deepEqual(recordsOf(after, 'dkim'), [{ ...fresh, status: 'verified' }])
    assert.deepEqual(
      (await rows.keys(before.identity.id)).map(({ state, sealed }) => [state, sealed !== null]),
      [
        ['retired', false],
        ['active', true],
      ],
    )
    assertAbout((await verification(before)).next_check_seconds, day)

    await withdraw(present)
    assert.equal((await check(before)).last_check_error, null, 'the old record is not required')
    assert.equal(after.verified_at, before.verified_at)
  })

  test('becomes active even if the old record was removed immediately', async () => {
    const before = await makeVerified()
    const { resource } = (await admin.post(`${pathOf(before)}/rotate`, { reason: 'Leaked' })).body
    const [present, fresh] = recordsOf(resource, 'dkim')
    assert.ok(present && fresh)
    await withdraw(present)
    await publish(fresh)
    const after = await check(before)
    assert.deepEqual([after.status, after.last_check_error], ['verified', null])
    assert.deepEqual(recordsOf(after, 'dkim'), [{ ...fresh, status: 'verified' }])
  })

  test('is the only key required to verify a domain that was never verified', async () => {
    const domain = await makeRegistered('service')
    await publish(...domain.dns_records)
    const { resource } = (await admin.post(`${pathOf(domain)}/rotate`, { reason: 'Before it began' })).body
    const pending = await check(domain)
    assert.deepEqual([pending.status, recordStatuses(pending)['dkim']], ['pending', 'pending'])
    await publish(recordOf(resource, 'dkim'))
    assert.equal((await check(domain)).status, 'verified')
  })
})

describe('a domain on SES', () => {
  test("shows three CNAME records after registration, and requires them, the ownership record and SES's verification", async () => {
    const domain = await makeRegistered('ses')
    const aliases = recordsOf(domain, 'dkim')
    assert.deepEqual(
      aliases.map(({ type, name, value }) => [type, name, value]),
      ses
        .tokens(domain.name)
        .map((token) => ['CNAME', `${token}._domainkey.${domain.name}`, `${token}.dkim.amazonses.com`]),
    )
    assert.ok(domain.identity.registered_at)
    await publish(...aliases)
    assert.match(
      (await check(domain)).last_check_error ?? '',
      /_postern\.\S+ was not found\. SES has not found/,
    )

    ses.setDkim(domain.name, 'SUCCESS')
    const unowned = await check(domain)
    assert.deepEqual(
      [unowned.status, unowned.dns_records.filter(({ status }) => status === 'verified').length],
      ['pending', 3],
    )

    ses.setDkim(domain.name, 'PENDING')
    await publish(recordOf(domain, 'ownership'))
    const unseen = await check(domain)
    assert.deepEqual(
      [unseen.status, unseen.last_check_error],
      ['pending', 'SES has not found the DKIM records yet. Last check: HOST_NOT_FOUND.'],
    )

    await ses.checkDns(domain.name, stage.api.context.dns)
    const verified = await check(domain)
    assert.deepEqual([verified.status, verified.last_check_error], ['verified', null])
  })

  test('fails after the grace period when SES reports it unverified, and not while SES is unreachable', async () => {
    const on = await startStage(world)
    const domain = await makeVerified('ses', on)
    ses.failNext('get', 'unavailable', 4)
    for (const offset of ['1 day', '9 days']) {
      const silent = await on.check(domain, await on.later(offset))
      assert.equal(silent.status, 'verified')
      assert.match(silent.last_check_error ?? '', /^The provider could not be reached/)
      assert.equal((await on.verification(domain)).is_failing, false)
    }
    ses.setDkim(domain.name, 'TEMPORARY_FAILURE')
    assert.equal((await on.check(domain, await on.later('10 days'))).status, 'verified')
    assert.equal((await on.check(domain, await on.later('13 days 1 hour'))).status, 'failed')
  })

  test('is registered again if it was deleted at SES, and shows the new records', async () => {
    const domain = await makeVerified('ses')
    const old = recordsOf(domain, 'dkim')
    await deleteAtSes(domain.name)
    const lost = await check(domain)
    assert.deepEqual([lost.status, lost.identity.state], ['verified', 'registering'])
    assert.match(lost.last_check_error ?? '', /SES has no such identity\./)

    const again = await reconcile(domain)
    assert.deepEqual([again.identity.state, ses.has(domain.name)], ['registered', true])
    assert.equal(again.identity.id, domain.identity.id)
    const fresh = recordsOf(again, 'dkim')
    assert.deepEqual(
      fresh.map(({ value }) => value),
      ses.tokens(domain.name).map((token) => `${token}.dkim.amazonses.com`),
    )
    assert.equal(fresh.filter(({ name }) => old.some((record) => record.name === name)).length, 0)

    await withdraw(...old)
    await publish(...fresh)
    ses.setDkim(domain.name, 'SUCCESS')
    assert.deepEqual((await check(domain)).last_check_error, null)
  })

  test('is registered again for every project with the name if it was deleted at SES', async () => {
    const one = await makeVerified('ses')
    const other = await makeRegistered('ses', one.name)
    assert.deepEqual(
      recordsOf(one, 'dkim').map(({ value }) => value),
      recordsOf(other, 'dkim').map(({ value }) => value),
    )
    await deleteAtSes(one.name)
    await check(one)
    await reconcile(one)
    const wanted = ses.tokens(one.name).map((token) => `${token}.dkim.amazonses.com`)
    for (const domain of [one, other]) {
      const { identity, dns_records } = await show(domain)
      assert.deepEqual(
        recordsOf({ dns_records }, 'dkim').map(({ value }) => value),
        wanted,
      )
      assert.equal(identity.state, 'registered')
    }
  })

  test('keeps its status until it is registered, and SES is not queried', async () => {
    const project = await stage.makeProject()
    const domain = await stage.makeDomain(project.id)
    await publish(...domain.dns_records)
    const calls = ses.calls.length
    const checked = await check(domain)
    assert.equal(checked.status, 'pending')
    assert.equal(checked.last_check_error, 'The provider has not registered the domain yet.')
    assert.equal(ses.calls.length, calls)
  })

  async function deleteAtSes(name: string): Promise<void> {
    await stage.api.context.providers.ses?.deregister(name)
    assert.equal(ses.has(name), false)
  }
})

test('no errors are logged', () => assert.deepEqual(stage.errors(), []))
