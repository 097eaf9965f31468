import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, mock, test } from 'node:test'
import nodemailer from 'nodemailer'
import PostalMime from 'postal-mime'
import { bounceDeps } from '../../context/context.ts'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { PendingDeliveries } from '../../core/mail/webhooks/pending-deliveries.ts'
import { signMime } from '../../formats/sign.ts'
import { networksOf } from '../../platform/net/net-guard.ts'
import { registry } from '../../platform/telemetry/metrics.ts'
import { makeDkimPair } from '../../testing/fixtures/dkim.ts'
import { type ReportName, reportAbout } from '../../testing/fixtures/mail-reports.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { noNetworks, testAnalysisThreads } from '../../testing/harness/analysis-threads.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { openInbound } from '../../testing/harness/inbound-harness.ts'
import { submit } from '../../testing/harness/submission-harness.ts'
import { startDns } from '../../testing/peers/dns.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'
import { type BounceDeps, startBounces } from './bounces.ts'

/**
 * Untrusted mail is parsed once, in worker threads and within CPU time budgets, and only known reporters
 * can send complaints.
 */
const { key, record } = makeDkimPair('feedback.example.net')
const dns = await startDns({
  '.': [{ name: `${key.selector}._domainkey.${key.domain}`, type: 'TXT', value: record }],
})
const database = await testDatabase()
const returnPathHost = 'bounces.example.org'
const api = await startApi(database, {
  POSTERN_DNS_SERVERS: dns.server,
  POSTERN_RETURN_PATH_HOST: returnPathHost,
})
const admin = await signedIn(api)
const { makeReceiver } = receivers(database, admin)
const { makeMail, stateOf } = mailRows(database)
const keys = verpKeysOf(api.context.config.masterKeys)
const parsedHere = mock.method(PostalMime, 'parse')
const fbl = `fbl@${returnPathHost}`

async function bouncesWith(changes: Partial<BounceDeps> = {}) {
  const listener = await startBounces({ ...bounceDeps(api.context, undefined), port: 0, ...changes })
  cleanUp(() => listener.stop(1000))
  /** Returns the reply, whether it is a success or an error. */
  return async (to: string, raw: string | Buffer, localAddress = '127.0.0.1'): Promise<string> => {
    const transport = nodemailer.createTransport({ host: '127.0.0.1', port: listener.port, localAddress })
    return transport.sendMail({ envelope: { from: '', to: [to] }, raw }).then(
      ({ response }) => response,
      (error: { response?: string }) => error.response ?? String(error),
    )
  }
}

/** The number of thread jobs with this outcome. */
async function jobs(work: string, outcome = 'done'): Promise<number> {
  const metric = await registry.getSingleMetric('postern_analysis_jobs_total')?.get()
  const found = metric?.values.find(({ labels }) => labels['work'] === work && labels['outcome'] === outcome)
  return found?.value ?? 0
}

let projects = 7000
const reportOf = (mail: TestMail, name: ReportName) => reportAbout(keys, mail, name)

describe('a report', () => {
  test('is parsed once, in a thread', async () => {
    const send = await bouncesWith()
    const mail = await makeMail(++projects)
    const { returnPath, raw } = reportOf(mail, 'postfix-unknown-user')
    const [before, here] = [await jobs('report'), parsedHere.mock.callCount()]
    assert.match(await send(returnPath, raw), /^250/)
    assert.equal((await stateOf(mail)).status, 'bounced')
    assert.equal(await jobs('report'), before + 1)
    assert.equal(parsedHere.mock.callCount(), here)
  })

  test('is deferred if its network has used up its CPU time, but accepted from another network', async () => {
    const analysisThreads = testAnalysisThreads({ limits: { cpuMsPerNetwork: 0.001 } })
    const send = await bouncesWith({ analysisThreads, relays: noNetworks })
    const replies: string[] = []
    for (const from of ['127.0.0.1', '127.0.0.1', '127.0.0.2']) {
      const { returnPath, raw } = reportOf(await makeMail(++projects), 'postfix-unknown-user')
      replies.push((await send(returnPath, raw, from)).slice(0, 9))
    }
    assert.deepEqual(replies, ['250 2.0.0', '451 4.7.1', '250 2.0.0'])
  })

  test('is deferred if its addressee has used up its CPU time, but accepted for other addressees', async () => {
    const analysisThreads = testAnalysisThreads({ limits: { cpuMsPerAddressee: 0.001, quietCpuMs: 0 } })
    const send = await bouncesWith({ analysisThreads, relays: noNetworks })
    const [full, other] = [await makeMail(++projects), await makeMail(++projects)]
    const replies: string[] = []
    for (const mail of [full, full, other]) {
      const { returnPath, raw } = reportOf(mail, 'postfix-delayed')
      replies.push((await send(returnPath, raw)).slice(0, 9))
    }
    assert.deepEqual(replies, ['250 2.0.0', '451 4.7.1', '250 2.0.0'])
  })

  test('to a flooded addressee is accepted from a network that has sent little mail', async () => {
    // The budget recovers only slightly between two reports.
    const limits = { cpuMsPerNetwork: 100, cpuMsPerAddressee: 0.001, quietCpuMs: 0.001 }
    const analysisThreads = testAnalysisThreads({ limits })
    const send = await bouncesWith({ analysisThreads, relays: noNetworks })
    const mail = await makeMail(++projects)
    const replies: string[] = []
    for (const [name, from] of [
      ['postfix-delayed', '127.0.0.1'],
      ['postfix-delayed', '127.0.0.1'],
      ['postfix-unknown-user', '127.0.0.2'],
    ] as const) {
      const { returnPath, raw } = reportOf(mail, name)
      replies.push((await send(returnPath, raw, from)).slice(0, 9))
    }
    assert.deepEqual(replies, ['250 2.0.0', '451 4.7.1', '250 2.0.0'])
    assert.equal((await stateOf(mail)).status, 'bounced')
  })
})

describe('a complaint', () => {
  const complaint = async () => {
    const mail = await makeMail(++projects)
    const { raw } = reportOf(mail, 'complaint')
    return { mail, raw, signed: await signMime(Buffer.from(fromReporter(raw)), key) }
  }
  const fromReporter = (raw: string) => raw.replace(/^From: .*$/m, `From: <reports@${key.domain}>`)

  test('from an unknown reporter is rejected without being parsed', async () => {
    const send = await bouncesWith()
    const { mail, raw } = await complaint()
    const before = await jobs('report')
    assert.match(await send(fbl, raw), /^550 5\.7\.1/)
    assert.match(await send(`abuse@${returnPathHost}`, raw), /^550 5\.7\.1/)
    assert.equal((await stateOf(mail)).status, 'sent')
    assert.equal(await jobs('report'), before)
  })

  test('with a valid DKIM signature by the domain in From is accepted', async () => {
    const send = await bouncesWith()
    const { mail, signed } = await complaint()
    assert.match(await send(fbl, signed), /^250/)
    assert.equal((await stateOf(mail)).status, 'complained')
  })

  test('that was modified after signing or is signed by another domain is rejected', async () => {
    const send = await bouncesWith()
    const { mail, raw, signed } = await complaint()
    assert.match(await send(fbl, String(signed).replace('abuse', 'fraud')), /^550 5\.7\.1/)
    const other = raw.replace(/^From: .*$/m, 'From: <reports@provider.example>')
    assert.match(await send(fbl, await signMime(Buffer.from(other), key)), /^550 5\.7\.1/)
    assert.equal((await stateOf(mail)).status, 'sent')
  })

  test('from a configured domain or network is accepted with any From', async () => {
    const byDomain = await bouncesWith({ reporters: { networks: noNetworks, domains: ['example.net'] } })
    const one = await complaint()
    const other = one.raw.replace(/^From: .*$/m, 'From: <reports@provider.example>')
    assert.match(await byDomain(fbl, await signMime(Buffer.from(other), key)), /^250/)
    assert.equal((await stateOf(one.mail)).status, 'complained')
    const { reporters } = bounceDeps(
      {
        ...api.context,
        config: { ...api.context.config, feedbackReporters: { networks: ['127.0.0.3'], domains: [] } },
      },
      undefined,
    )
    const byNetwork = await bouncesWith({ reporters })
    const two = await complaint()
    assert.match(await byNetwork(fbl, two.raw), /^550/)
    assert.match(await byNetwork(fbl, two.raw, '127.0.0.3'), /^250/)
    assert.equal((await stateOf(two.mail)).status, 'complained')
  })

  test('from a configured network is accepted while other networks use up the CPU time for complaints', async () => {
    const analysisThreads = testAnalysisThreads({ limits: { cpuMsPerAddressee: 0.001, quietCpuMs: 0 } })
    const reporters = { networks: networksOf(['127.0.0.3']), domains: [] }
    const send = await bouncesWith({ analysisThreads, reporters, relays: noNetworks })
    const { mail, raw } = await complaint()
    await analysisThreads.readReport(Buffer.from(raw), { network: '192.0.2.1', addressee: 'complaints' })
    assert.match(await send(fbl, raw), /^451 4\.7\.1/)
    assert.match(await send(fbl, raw, '127.0.0.3'), /^250/)
    assert.equal((await stateOf(mail)).status, 'complained')
  })

  test('is deferred if its DKIM key lookup fails', async () => {
    const send = await bouncesWith({
      analysisThreads: testAnalysisThreads({ limits: { authTimeoutMs: 2000 } }),
    })
    assert.match(await send(fbl, (await complaint()).signed), /^451 4\.7\.5/)
  })

  test('is accepted up to 300 times per minute from one network', async () => {
    const listener = await startBounces({
      ...bounceDeps(api.context, undefined),
      ...{ port: 0, relays: noNetworks },
    })
    cleanUp(() => listener.stop(1000))
    const client = await SmtpClient.open(listener.port)
    await client.say('EHLO a.example')
    const replies: string[] = []
    for (let no = 0; no < 302; no++) {
      await client.say('MAIL FROM:<>')
      replies.push(((await client.say(`RCPT TO:<${fbl}>`)) ?? '').slice(0, 3))
      await client.say('RSET')
    }
    client.close()
    assert.equal(replies.filter((code) => code === '250').length, 300)
    assert.deepEqual(replies.slice(300), ['451', '451'])
  })
})

describe("a message to fifty of a project's addresses", () => {
  test('is analyzed once, in threads, and stored once', async () => {
    const shop = await makeReceiver()
    await shop.route('support', shop.toEndpoint)
    const { open, inboundOf, eventsOf } = await openInbound(api, database)
    const raw = [
      ...['From: a@example.com', 'Subject: Many', 'MIME-Version: 1.0'],
      ...['Content-Type: multipart/mixed; boundary=x', '', '--x', 'Content-Type: text/plain', ''],
      ...Array.from({ length: 500 }, () => 'ä"'.repeat(40)),
      ...['--x', 'Content-Disposition: attachment; filename=a', 'Content-Transfer-Encoding: base64', ''],
      ...(randomBytes(30_000)
        .toString('base64')
        .match(/.{1,76}/g) ?? []),
      ...['--x--', ''],
    ].join('\r\n')
    const to = Array.from({ length: 50 }, (_, no) => shop.at(`support+${no}`))
    const before = { authenticate: await jobs('authenticate'), parse: await jobs('parse') }
    const here = parsedHere.mock.callCount()
    assert.match(await submit(await open(), raw, { to }), /^250/)
    assert.deepEqual(
      { authenticate: await jobs('authenticate'), parse: await jobs('parse') },
      { authenticate: before.authenticate + 1, parse: before.parse + 1 },
    )
    assert.equal(parsedHere.mock.callCount(), here)

    assert.equal((await inboundOf(shop.id)).length, 50)
    const [stored] = await database.query<{ bodies: number; content: number; event_data: number }>(
      `select count(*)::int as bodies, sum(octet_length(content))::int as content,
              sum(octet_length(event_data))::int as event_data from mail.inbound_bodies where project_id = $1`,
      [shop.id],
    )
    assert.equal(stored?.bodies, 1)
    const [own] = await database.query<{ events: number; longest: number }>(
      `select count(*)::int as events, max(octet_length(data::text))::int as longest
         from mail.events where project_id = $1`,
      [shop.id],
    )
    assert.equal(own?.events, 50)
    assert.ok(own.longest < 1024, `${own.longest} octets`)
    const [used] = await database.query<{ bytes: number }>(
      `select inbound_bytes::int as bytes from mail.usage where project_id = $1 and period = 'day'`,
      [shop.id],
    )
    assert.equal(used?.bytes, (stored?.content ?? 0) + (stored?.event_data ?? 0) + 50 * 1024)

    const events = await eventsOf(shop.id)
    assert.equal(new Set(events.map(({ data }) => data['inbound_id'])).size, 50)
    assert.equal(new Set(events.map(({ data }) => (data['envelope'] as { to: string }).to)).size, 50)
    for (const { data } of events) assert.equal((data['text'] as string).length, 500 * 81)

    // The deliveries to an endpoint.
    const pending = new PendingDeliveries(api.context.cells.all[0].mail)
    const [{ shard } = { shard: 0 }] = await database.query<{ shard: number }>(
      'select postern.shard_of($1) as shard',
      [shop.id],
    )
    const queue = { shard, endpoint_id: shop.endpoint.id, project_id: shop.id, lease: 1 }
    const due = await pending.next({ ...queue, after: undefined, most: 50 })
    assert.equal(due.length, 50)
    for (const delivery of due.slice(0, 3)) {
      const { event } = delivery
      assert.ok(event)
      const body = await pending.withBody({ ...delivery, event }, 'healthy', async (bytes) => String(bytes))
      const { data } = events.find(({ id }) => id === event.id) ?? {}
      assert.deepEqual(JSON.parse(body).data, { ...data, project_id: shop.id })
    }
  })

  test('is deferred if its network or project has used up its CPU time, while others are accepted', async () => {
    const [full, other] = [await makeReceiver(), await makeReceiver()]
    for (const one of [full, other]) await one.route(null, one.toEndpoint)
    const analysisThreads = testAnalysisThreads({ limits: { cpuMsPerAddressee: 0.001, quietCpuMs: 0 } })
    const limited = await openInbound(api, database, { analysisThreads, relays: noNetworks })
    await full.route('dropped', { action: 'drop' })
    const bring = async (to: string) =>
      (await submit(await limited.open(), 'From: a@example.com\r\n\r\nx', { to: [to] })).slice(0, 9)
    assert.equal(await bring(full.at('dropped')), '250 2.0.0')
    assert.equal(await bring(full.at('x')), '451 4.7.1')
    await other.route('dropped', { action: 'drop' })
    assert.equal(await bring(other.at('dropped')), '250 2.0.0')
  })
})
