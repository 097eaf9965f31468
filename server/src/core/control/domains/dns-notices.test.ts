import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { exposition } from '../../../platform/telemetry/metrics.ts'
import { startStage, startWorld } from '../../../testing/harness/verification-harness.ts'
import { patienceMs } from '../../../testing/harness/waiting.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'
import { sendDomainNotices } from './dns-notices.ts'

/** Notices about a verified domain for which DNS lookups fail. */
const world = await startWorld()
const inbox = await startMtaInbox()
const settings = { POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url }

async function startUnanswered() {
  const on = await startStage(world, settings)
  const owner = await on.makeUser()
  const { id } = await on.makeProject({ name: 'Web shop', user_id: owner.id })
  const domain = await on.makeRegistered('service', undefined, id)
  await world.publish(...domain.dns_records)
  assert.equal((await on.check(domain)).status, 'verified')
  const deps = workerDeps(on.api.context)
  return {
    ...{ on, domain },
    round: () => sendDomainNotices(deps, 100, AbortSignal.timeout(patienceMs)),
    subjects: () =>
      inbox.mails
        .filter(({ to }) => to.includes(owner.email))
        .map(({ text }) => /^Subject: (.*)$/im.exec(text)?.[1]?.trim()),
    mails: () => inbox.mails.filter(({ to }) => to.includes(owner.email)),
    waiting: async () => (await on.database.query('select from control.domain_notices')).length,
    events: () =>
      on.database.query<{ type: string }>(
        `select payload ->> 'type' as type from control.outbox where topic = 'event' order by id`,
      ),
  }
}

const counted = async (days: number) =>
  Number(
    new RegExp(`^postern_domains_unanswered_total\\{days="${days}"\\} (\\d+)$`, 'm').exec(
      await exposition(),
    )?.[1],
  )

describe('the owner of a verified domain with failing DNS lookups', () => {
  test('is warned after 3 and 10 days, and notified when the domain is no longer verified', async () => {
    const { on, domain, round, subjects, mails, waiting, events } = await startUnanswered()
    const before = await Promise.all([3, 10, 14].map(counted))
    await world.dns.breakZone('.')
    try {
      const seen = []
      for (const days of ['0', '2.9', '3.1', '5', '10.1', '13.9', '14.1', '16']) {
        const { status } = await on.check(domain, await on.later(`${Number(days) * 24} hours`))
        await round()
        seen.push([days, status, mails().length])
      }
      assert.deepEqual(seen, [
        ['0', 'verified', 0],
        ['2.9', 'verified', 0],
        ['3.1', 'verified', 1],
        ['5', 'verified', 1],
        ['10.1', 'verified', 2],
        ['13.9', 'verified', 2],
        ['14.1', 'failed', 3],
        ['16', 'failed', 3],
      ])
    } finally {
      await world.publish()
    }
    assert.deepEqual(subjects(), [
      `DNS lookups for ${domain.name} are failing`,
      `DNS lookups for ${domain.name} are failing`,
      `${domain.name} is no longer verified`,
    ])
    const text = mails()[0]?.text.replaceAll('=\r\n', '') ?? ''
    for (const part of ['Web shop', 'for 3 days', 'SERVFAIL', `/domains/${domain.id}/verify`]) {
      assert.ok(text.includes(part), `${part} is not in: ${text}`)
    }
    assert.equal(await waiting(), 0)
    assert.deepEqual(
      (await events()).map(({ type }) => type),
      ['domain.verified', 'domain.failed'],
    )
    assert.match(on.api.logLines.join('\n'), /DNS lookups fail for a verified domain/)
    const after = await Promise.all([3, 10, 14].map(counted))
    assert.deepEqual(
      after.map((count, at) => count - (before[at] ?? 0)),
      [1, 1, 1],
    )
  })

  test('is notified later if the MTA is unavailable, and not at all if the lookups succeed again', async () => {
    const { on, domain, round, mails, waiting } = await startUnanswered()
    await world.dns.breakZone('.')
    try {
      await on.check(domain)
      await on.check(domain, await on.later('4 days'))
      inbox.refuseWith(451)
      await round()
      inbox.refuseWith(null)
      assert.deepEqual([mails().length, await waiting()], [0, 1])
    } finally {
      await world.publish()
    }
    await on.check(domain, await on.later('5 days'))
    await round()
    assert.deepEqual([mails().length, await waiting()], [0, 0])
  })
})
