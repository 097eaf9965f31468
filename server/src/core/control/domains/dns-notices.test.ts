import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { exposition } from '../../../platform/telemetry/metrics.ts'
import { assertDocumented } from '../../../testing/expectations/documented-events.ts'
import { sendAllSystemMail } from '../../../testing/harness/system-mail.ts'
import { startStage, startWorld } from '../../../testing/harness/verification-harness.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'

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
    round: (of = deps) => sendAllSystemMail(on.database, of),
    subjects: () =>
      inbox.mails
        .filter(({ to }) => to.includes(owner.email))
        .map(({ text }) => /^Subject: (.*)$/im.exec(text)?.[1]?.trim()),
    mails: () => inbox.mails.filter(({ to }) => to.includes(owner.email)),
    waiting: async () =>
      (await on.database.query('select from control.system_mails where outcome is null')).length,
    events: () =>
      on.database.query<{ type: string; data: object }>(
        `select payload ->> 'type' as type, payload -> 'data' || jsonb_build_object('project_id', project_id) as data
           from control.outbox where topic = 'event' order by id`,
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
        const later = await on.later(`${Number(days) * 24} hours`)
        const { status } = await on.check(domain, later)
        await round(later)
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
    const shown = domain.name.replaceAll('.', '[.]')
    assert.deepEqual(subjects(), [
      `DNS lookups for ${shown} are failing`,
      `DNS lookups for ${shown} are failing`,
      `${shown} is no longer verified`,
    ])
    const text = mails()[0]?.plain ?? ''
    for (const part of ['Web shop', 'for 3 days', 'SERVFAIL', `/domains/${domain.id}/verify`]) {
      assert.ok(text.includes(part), `${part} is not in: ${text}`)
    }
    assert.equal(await waiting(), 0)
    assert.deepEqual(
      (await events()).map(({ type }) => type),
      ['domain.verified', 'domain.failed'],
    )
    for (const event of await events()) assertDocumented({ ...event, timestamp: '2026-11-14T09:30:00.000Z' })
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
      const later = await on.later('4 days')
      await on.check(domain, later)
      inbox.refuseWith(451)
      await round(later)
      inbox.refuseWith(null)
      assert.deepEqual([mails().length, await waiting()], [0, 1])
    } finally {
      await world.publish()
    }
    const later = await on.later('5 days')
    await on.check(domain, later)
    await round(later)
    assert.deepEqual([mails().length, await waiting()], [0, 0])
  })
})
