import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bounceDeps, workerDeps } from '../../context/context.ts'
import { startBounces } from '../../intake/bounces/bounces.ts'
import { Dispatcher } from '../../worker/dispatcher.ts'
import { arcOf } from '../expectations/mail-authentication.ts'
import { ampleByteLimits } from '../fixtures/byte-limits.ts'
import { reportAbout } from '../fixtures/mail-reports.ts'
import { receivers } from '../fixtures/receiving-projects.ts'
import { startApi } from '../harness/api.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { signedIn } from '../harness/client.ts'
import { testDatabase } from '../harness/database.ts'
import { openInbound, someMail } from '../harness/inbound-harness.ts'
import { submit } from '../harness/submission-harness.ts'
import { eventually } from '../harness/waiting.ts'
import { startDns } from '../peers/dns.ts'
import { Sink } from '../peers/sink.ts'
import { SmtpClient } from '../peers/smtp-client.ts'

/** Inbound mail that is forwarded to a real SMTP server. */
const sink = await Sink.open()
const dns = await startDns()
const database = await testDatabase()
const api = await startApi(database, {
  POSTERN_DNS_SERVERS: dns.server,
  POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
})
const admin = await signedIn(api)
const { makeReceiver, makePlan } = receivers(database, admin)
const { open, inboundOf } = await openInbound(api, database)
const bounces = await startBounces({ ...bounceDeps(api.context, undefined), port: 0 })
cleanUp(() => bounces.stop(1000))
const { dispatch, log } = workerDeps(api.context)
const dispatcher = new Dispatcher({ ...dispatch, db: api.context.cells.all[0].mail, log })
dispatcher.start()
cleanUp(() => dispatcher.stop())

let targets = 0

async function makeForwarder(changes: Parameters<typeof makeReceiver>[0] = {}) {
  const shop = await makeReceiver(changes)
  const target = `target${++targets}@example.net`
  await shop.route('sales', { action: 'forward', forward_to: target })
  const submitMail = async (from: string, raw = someMail()) =>
    submit(await open(), raw, { from, to: [shop.at('sales')] })
  const nextDelivery = () => sink.next(({ to }) => to[0] === target)
  return { ...shop, target, submitMail, nextDelivery }
}

const statusOf = async (messageId: string) =>
  (
    await database.query<{ status: string }>('select status from mail.recipients where message_id = $1', [
      messageId,
    ])
  )[0]?.status

const waitForStatus = (messageId: string, status: string): Promise<boolean> =>
  eventually(`the message is ${status}`, async () => (await statusOf(messageId)) === status)

describe('forwarded mail', () => {
  test('arrives unchanged, with an ARC seal and a return path at the domain', async () => {
    const shop = await makeForwarder()
    const [key] = await database.query<{ selector: string; public_key: string }>(
      'select selector, public_key from control.dkim_keys where project_id = $1',
      [shop.id],
    )
    await dns.setZone('.', [
      { name: 'example.com', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
      {
        name: `${key?.selector}._domainkey.${shop.domain.name}`,
        type: 'TXT',
        value: `v=DKIM1; k=rsa; p=${key?.public_key}`,
      },
    ])
    const raw = someMail({ fields: ['X-Odd:   kept \t as it is'], body: 'Hello\r\n\r\n..dots' })
    assert.match(await shop.submitMail('ada@example.com', raw), /^250/)
    const delivery = await shop.nextDelivery()
    const text = delivery.raw.toString('latin1')
    assert.ok(text.endsWith(`${raw.replace('..dots', '.dots')}\r\n`), text)
    assert.match(delivery.from, new RegExp(`^SRS0=.{8}=..=example\\.com=ada@bounces\\.${shop.domain.name}$`))
    assert.match(text, new RegExp(`^X-Postern-Forwarded: ${shop.at('sales')}\r$`, 'm'))
    assert.match(text, /^Received: from client\.example \(\[127\.0\.0\.1\]\)\r\n by localhost with ESMTP\r$/m)
    assert.doesNotMatch(text, /^DKIM-Signature:/m)
    assert.deepEqual(await arcOf(delivery.raw, dns.server), {
      result: 'pass',
      domain: shop.domain.name,
      spf: 'pass',
    })
    const [row = assert.fail()] = await inboundOf(shop.id)
    await waitForStatus(row.message_id ?? '', 'sent')
    const usage = await admin.get(`${shop.path}/usage`)
    assert.equal(usage.body.day.accepted, 1)
    assert.equal(row.body_id, null)

    assert.match(
      await submit(await open(), delivery.raw, { to: [shop.at('sales')] }),
      /^554 5\.4\.6/,
      'a returned message is a loop',
    )
  })

  test('keeps the null sender, and uses an ordinary return path for a long sender', async () => {
    const shop = await makeForwarder()
    await shop.submitMail('')
    assert.equal((await shop.nextDelivery()).from, '')
    await shop.submitMail(`${'a'.repeat(60)}@example.com`)
    assert.match((await shop.nextDelivery()).from, /^bounce-[a-z2-7]{48}@bounces\./)
    await shop.submitMail('"quoted"@example.com')
    assert.match((await shop.nextDelivery()).from, /^bounce-[a-z2-7]{48}@bounces\./)
  })

  test('to two addresses with the same target is sent once', async () => {
    const shop = await makeForwarder()
    await shop.route('orders', { action: 'forward', forward_to: shop.target.toUpperCase() })
    const to = [shop.at('sales'), shop.at('orders'), shop.at('sales+x')]
    assert.match(await submit(await open(), someMail(), { from: 'ada@example.com', to }), /^250/)
    await shop.nextDelivery()
    const rows = await inboundOf(shop.id)
    assert.equal(rows.length, 3)
    assert.equal(new Set(rows.map(({ message_id }) => message_id)).size, 1)
    const [count] = await database.query<{ count: string }>(
      'select count(*) from mail.recipients where message_id = $1',
      [rows[0]?.message_id],
    )
    assert.equal(count?.count, '1')
  })

  test('is deferred if the quota is exceeded, there is no subscription, or the domain is unverified', async () => {
    const { id: planId } = await makePlan({ max_mails_per_day: 1 })
    const full = await makeForwarder({ planId })
    assert.match(await full.submitMail('ada@example.com'), /^250/)
    assert.match(await full.submitMail('ada@example.com'), /^452 4\.2\.2/)
    assert.equal((await inboundOf(full.id)).length, 1)

    const unpaid = await makeForwarder()
    await admin.patch(unpaid.path, { admin_subscription_status: 'canceled', reason: 'Unpaid' })
    assert.match(await unpaid.submitMail('ada@example.com'), /^450 4\.3\.0/)

    const unverified = await makeForwarder({ status: 'pending' })
    assert.match(await unverified.submitMail('ada@example.com'), /^450 4\.3\.0/)
    assert.deepEqual(await inboundOf(unverified.id), [])
  })

  test('to a suppressed address is accepted but not sent', async () => {
    const shop = await makeForwarder()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, $2, 'manual')`,
      [shop.id, shop.target],
    )
    assert.match(await shop.submitMail('ada@example.com'), /^250/)
    const [row = assert.fail()] = await inboundOf(shop.id)
    assert.equal(await statusOf(row.message_id ?? ''), 'suppressed')
  })
})

describe('mail that fails DMARC', () => {
  const mailFrom = (...from: string[]) =>
    ['Subject: Your account', ...from, '', 'http://phish.example'].join('\r\n')
  const notForwarded = async (projectId: number) =>
    database.query<{ action: string; not_forwarded: string | null }>(
      'select action, not_forwarded from mail.inbound where project_id = $1 order by action',
      [projectId],
    )
  const zone = () =>
    dns.setZone('.', [
      { name: 'bank.example', type: 'TXT', value: 'v=spf1 -all' },
      { name: '_dmarc.bank.example', type: 'TXT', value: 'v=DMARC1; p=reject' },
      { name: '_dmarc.shop.example', type: 'TXT', value: 'v=DMARC1; p=none; sp=quarantine' },
      { name: 'true.example', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
      { name: '_dmarc.true.example', type: 'TXT', value: 'v=DMARC1; p=reject' },
    ])

  test('is not forwarded if the policy of the domain in From, or of its parent domain, is reject or quarantine', async () => {
    await zone()
    const shop = await makeForwarder()
    for (const [from, sender] of [
      ['From: Bank <security@bank.example>', 'security@bank.example'],
      ['From: Bank <security@bank.example>', 'eve@true.example'],
      ['From: a@news.bank.example', 'eve@elsewhere.example'],
      ['From: a@sub.shop.example', 'eve@elsewhere.example'],
    ] as const) {
      assert.match(await shop.submitMail(sender, mailFrom(from)), /^550 5\.7\.26 /, from)
    }
    assert.deepEqual(await notForwarded(shop.id), [])
    const usage = await admin.get(`${shop.path}/usage`)
    assert.equal(usage.body.day.accepted, 0)
  })

  test('is not forwarded unless From contains exactly one domain', async () => {
    await zone()
    const shop = await makeForwarder()
    for (const from of [
      ['From: a@bank.example, b@elsewhere.example'],
      ['From: a@elsewhere.example', 'From: a@bank.example'],
      [],
    ]) {
      assert.match(
        await shop.submitMail('eve@elsewhere.example', mailFrom(...from)),
        /^550 5\.7\.26 /,
        from.join(),
      )
    }
  })

  test('is forwarded if the policy is none, as is mail that passes', async () => {
    await zone()
    const shop = await makeForwarder()
    assert.match(await shop.submitMail('eve@elsewhere.example', mailFrom('From: a@shop.example')), /^250/)
    await shop.nextDelivery()
    assert.match(await shop.submitMail('ada@true.example', mailFrom('From: ada@true.example')), /^250/)
    await shop.nextDelivery()
  })

  test('is accepted for other routes, and the row records why it was not forwarded', async () => {
    await zone()
    const shop = await makeForwarder()
    await shop.route('support', shop.toEndpoint)
    const to = [shop.at('sales'), shop.at('support')]
    const raw = mailFrom('From: security@bank.example')
    assert.match(await submit(await open(), raw, { from: 'security@bank.example', to }), /^250/)
    assert.deepEqual(await notForwarded(shop.id), [
      { action: 'endpoint', not_forwarded: null },
      { action: 'forward', not_forwarded: 'dmarc' },
    ])
    const [count] = await database.query<{ count: number }>(
      'select count(*)::int as count from mail.messages where project_id = $1',
      [shop.id],
    )
    assert.equal(count?.count, 0)
  })
})

describe('the daily limit on forwards', () => {
  test('is counted separately from other mail, and mail that would exceed it is deferred', async () => {
    const byteLimits = { ...ampleByteLimits, max_forwards_per_day: 2 }
    const { open: openLimited } = await openInbound(api, database, { byteLimits })
    const shop = await makeForwarder()
    await shop.route('support', shop.toEndpoint)
    const submitMail = async (local: string) =>
      (
        await submit(await openLimited(), someMail(), { from: 'ada@example.com', to: [shop.at(local)] })
      ).slice(0, 9)
    assert.deepEqual(
      [
        await submitMail('sales'),
        await submitMail('sales'),
        await submitMail('sales'),
        await submitMail('support'),
      ],
      ['250 2.0.0', '250 2.0.0', '452 4.2.2', '250 2.0.0'],
    )
    const { limits } = (await admin.get(`${shop.path}/usage`)).body
    const [forwards] = limits.filter(({ name }: { name: string }) => name === 'max_forwards_per_day')
    assert.equal(forwards.used, 2)
  })
})

describe('a report about forwarded mail', () => {
  /** The envelope id that the MTA received and would put into a report. */
  const envidOf = (messageId: string, shop: { id: number }) =>
    database
      .query<{ shard: number }>('select shard from mail.messages where id = $1 and project_id = $2', [
        messageId,
        shop.id,
      ])
      .then(([row]) =>
        reportAbout(
          dispatch.returnPathKeys,
          { projectId: shop.id, shard: row?.shard ?? 0, messageId, recipientNo: 0, address: '' },
          'postfix-unknown-user',
        ).returnPath.replace(/@.*/, ''),
      )

  async function report(to: string, raw: string): Promise<string> {
    const client = await SmtpClient.open(bounces.port)
    cleanUp(async () => client.close())
    await client.say('EHLO mta.example')
    return submit(client, raw, { to: [to] })
  }

  const failure = (envid: string, recipient: string) =>
    reportAbout(
      dispatch.returnPathKeys,
      {
        projectId: 0,
        shard: 0,
        messageId: '00000000-0000-0000-0000-000000000000',
        recipientNo: 0,
        address: recipient,
      },
      'postfix-unknown-user',
    )
      .raw.replace(/^Original-Envelope-Id: .*\r\n/m, '')
      .replace(/^(Reporting-MTA: .*\r\n)/m, `$1Original-Envelope-Id: ${envid}\r\n`)

  const confirmed = { name: 'example.com', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' } as const

  test('is not returned to a sender that may be forged', async () => {
    await dns.setZone('.', [confirmed, { name: 'victim.example', type: 'TXT', value: 'v=spf1 -all' }])
    for (const sender of ['eve@victim.example', 'eve@without-spf.example']) {
      const shop = await makeForwarder()
      await shop.submitMail(sender)
      const { from } = await shop.nextDelivery()
      const [row = assert.fail()] = await inboundOf(shop.id)
      const messageId = row.message_id ?? ''
      await waitForStatus(messageId, 'sent')
      assert.match(await report(from, failure(await envidOf(messageId, shop), shop.target)), /^250/)
      assert.equal(await statusOf(messageId), 'bounced')
      const [count] = await database.query<{ count: number }>(
        'select count(*)::int as count from mail.messages where project_id = $1',
        [shop.id],
      )
      assert.equal(count?.count, 1, sender)
    }
  })

  test('marks the message as bounced and is returned to the sender once, with the null sender', async () => {
    await dns.setZone('.', [confirmed])
    const shop = await makeForwarder()
    const sender = `ada${targets}@example.com`
    await shop.submitMail(sender)
    const { from } = await shop.nextDelivery()
    const [row = assert.fail()] = await inboundOf(shop.id)
    const messageId = row.message_id ?? ''
    await waitForStatus(messageId, 'sent')
    const raw = failure(await envidOf(messageId, shop), shop.target)
    assert.match(await report(from, raw), /^250/)
    assert.match(await report(from, raw), /^250/)
    assert.equal(await statusOf(messageId), 'bounced')
    const returned = await sink.next(({ to }) => to[0] === sender)
    assert.equal(returned.from, '')
    assert.match(returned.raw.toString(), /^Content-Type: multipart\/report/m)
    await sleep(500)
    assert.equal(sink.received.filter(({ to }) => to[0] === sender).length, 1)
  })

  test('with a foreign envelope id or a forged address has no effect', async () => {
    const shop = await makeForwarder()
    await shop.submitMail('eve@example.com')
    const { from } = await shop.nextDelivery()
    const [row = assert.fail()] = await inboundOf(shop.id)
    await waitForStatus(row.message_id ?? '', 'sent')
    assert.match(await report(from, failure('bounce-aaaa', shop.target)), /^250/)
    assert.equal(await statusOf(row.message_id ?? ''), 'sent')
    assert.match(await report(from.replace('=eve@', '=mallory@'), someMail()), /^550 5\.1\.1/)
  })
})
