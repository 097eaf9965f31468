import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { srsKeysOf } from '../../core/mail/feedback/srs-path.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { type Report, reportAbout } from '../../testing/fixtures/mail-reports.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { localReporters, loopback, testAnalysisThreads } from '../../testing/harness/analysis-threads.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../testing/harness/database.ts'
import { feedbackIn } from '../../testing/harness/feedback.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { makeCertificate } from '../../testing/peers/certificate.ts'
import { losingConnection, startPostgresProxy } from '../../testing/peers/postgres-proxy.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'
import type { Listener } from '../smtp/listener.ts'
import { type BounceDeps, startBounces } from './bounces.ts'

/** Database and client failures, and the intake's shutdown. */
const database = await testDatabase()
const proxy = await startPostgresProxy(database.url)
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const logLines: string[] = []
const log = createLogger('info', { write: (line) => void logLines.push(line) })
const deps: BounceDeps = {
  feedback: feedbackIn(openCells({ ...database, url: proxy.urlOf(database.url) }), log),
  keys,
  srsKeys: srsKeysOf([{ id: '1', key: randomBytes(32) }]),
  analysisThreads: testAnalysisThreads(),
  reporters: localReporters,
  relays: loopback,
  log,
  returnPathHost: 'bounces.example.org',
  host: '127.0.0.1',
  port: 0,
  tls: undefined,
}
const { makeMail, stateOf, countsOf } = mailRows(database)

async function start(changes: Partial<BounceDeps> = {}): Promise<Listener> {
  const listener = await startBounces({ ...deps, ...changes })
  cleanUp(() => listener.stop(100))
  return listener
}

const listener = await start()

const reportOf = (mail: TestMail): Report => reportAbout(keys, mail, 'postfix-unknown-user')

/** Sends one message on a new connection and returns the reply. */
async function send(
  { port }: Listener,
  { returnPath, raw }: Report,
  localAddress = '127.0.0.1',
): Promise<string> {
  const transport = nodemailer.createTransport({ host: '127.0.0.1', port, localAddress })
  try {
    const { response } = await transport.sendMail({ envelope: { from: '', to: [returnPath] }, raw })
    return response
  } catch (error) {
    return (error as { response?: string }).response ?? String(error)
  }
}

let projects = 4000
const newProject = () => ++projects

describe('an unavailable database', () => {
  test('causes a 451 reply, and the retried report is applied', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    const url = new URL(database.url)
    url.port = '1'
    const away = await start({ feedback: feedbackIn(openCells({ ...database, url: url.href }), log) })
    assert.match(await send(away, reportOf(mail)), /^451 4\.3\.0/)
    assert.equal((await stateOf(mail)).status, 'sent')
    assert.match(
      logLines.join(''),
      /report not stored because the database is unavailable; the sender will retry/,
    )
    assert.match(await send(listener, reportOf(mail)), /^250/)
    assert.equal((await stateOf(mail)).status, 'bounced')
  })

  test('before the commit stores nothing; after the commit, when the response is lost, stores one event', async () => {
    for (const moment of ['onStatement', 'onDone'] as const) {
      const project = newProject()
      const mail = await makeMail(project)
      const reply = await losingConnection(proxy, moment, () => send(listener, reportOf(mail)))
      assert.match(reply, /^451/, moment)
      assert.equal((await stateOf(mail)).status, moment === 'onStatement' ? 'sent' : 'bounced')
      assert.match(await send(listener, reportOf(mail)), /^250/)
      assert.equal((await stateOf(mail)).events.length, 1)
      assert.deepEqual(await countsOf(project), { bounced: 1 })
    }
  })

  test('with an unexpected error causes a 451 reply and a logged error', async () => {
    const mail = await makeMail(newProject())
    await database.query('alter table mail.outbox rename to outbox_away')
    assert.match(await send(listener, reportOf(mail)), /^451/)
    await database.query('alter table mail.outbox_away rename to outbox')
    assert.match(logLines.join(''), /"level":"error".*report not processed/)
    assert.match(await send(listener, reportOf(mail)), /^250/)
    assert.equal((await stateOf(mail)).status, 'bounced')
  })
})

describe('an intake client', () => {
  test('can send at most 1 MiB, with or without SIZE', async () => {
    const mail = await makeMail(newProject())
    const report = reportOf(mail)
    const huge = { ...report, raw: report.raw + 'x'.repeat(70).concat('\r\n').repeat(20_000) }
    assert.match(await send(listener, huge), /^552/)
    const client = await SmtpClient.open(listener.port)
    await client.say('EHLO a.example')
    assert.match((await client.say('MAIL FROM:<> SIZE=1048577')) ?? '', /^552/)
    client.close()
    const fits = { ...report, raw: report.raw + 'x'.repeat(70).concat('\r\n').repeat(14_000) }
    assert.equal((await stateOf(mail)).status, 'sent')
    assert.match(await send(listener, fits), /^250/)
    assert.equal((await stateOf(mail)).status, 'bounced')
  })

  test('is disconnected if its mail data does not end', async () => {
    const client = await SmtpClient.open(listener.port)
    await client.begin(reportOf(await makeMail(newProject())).returnPath)
    const line = Buffer.from(`${'x'.repeat(998)}\r\n`.repeat(100))
    let written = 0
    while (!client.isOver && written < 100 * 1024 * 1024) {
      client.write(line)
      written += line.length
      await sleep(1)
    }
    assert.ok(client.isOver && written < 50 * 1024 * 1024, `${written} bytes`)
  })

  test('has no effect if it disconnects in the middle of a report', async () => {
    const mail = await makeMail(newProject())
    const { returnPath, raw } = reportOf(mail)
    const client = await SmtpClient.open(listener.port)
    await client.begin(returnPath)
    client.write(raw)
    client.close()
    await sleep(200)
    assert.equal((await stateOf(mail)).status, 'sent')
  })

  test('can send one report per transaction', async () => {
    const [one, other] = [reportOf(await makeMail(1)), reportOf(await makeMail(1))]
    const client = await SmtpClient.open(listener.port)
    await client.say('EHLO a.example')
    await client.say('MAIL FROM:<>')
    assert.match((await client.say(`RCPT TO:<${one.returnPath}>`)) ?? '', /^250/)
    assert.match((await client.say(`RCPT TO:<${other.returnPath}>`)) ?? '', /^452/)
    client.close()
  })

  test('can use at most a quarter of the buffer budget', async () => {
    const slow = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const client = await SmtpClient.open(listener.port)
        await client.begin(reportOf(await makeMail(newProject())).returnPath)
        client.write(`${'x'.repeat(998)}\r\n`.repeat(1040))
        return client
      }),
    )
    const report = reportOf(await makeMail(newProject()))
    await eventually('the share of the network is used up', async () =>
      /^452 4\.3\.1/.test(await send(listener, report)),
    )
    assert.match(await send(listener, report, '127.0.0.2'), /^250/)
    for (const client of slow) client.close()
    await eventually('its memory is released', async () => /^250/.test(await send(listener, report)))
  })

  test('can open at most fifty connections, each for a limited time', async () => {
    const crowded = await start()
    const clients = await Promise.all(Array.from({ length: 100 }, () => SmtpClient.open(crowded.port)))
    const late = await SmtpClient.open(crowded.port)
    assert.equal(await late.say('EHLO a.example'), undefined, 'the connection was closed')
    for (const client of clients) client.close()
    const report = reportOf(await makeMail(newProject()))
    await eventually('new connections are accepted', async () => /^250/.test(await send(crowded, report)))
    await crowded.stop(1000)
  })

  test('can use STARTTLS only if a certificate is configured', async () => {
    const { cert, key } = makeCertificate()
    const secure = await start({ tls: { cert, key } })
    const mail = await makeMail(newProject())
    const { returnPath, raw } = reportOf(mail)
    const through = (port: number) =>
      nodemailer
        .createTransport({ host: '127.0.0.1', port, requireTLS: true, tls: { rejectUnauthorized: false } })
        .sendMail({ envelope: { from: '', to: [returnPath] }, raw })
    await assert.rejects(through(listener.port), /STARTTLS/)
    assert.match((await through(secure.port)).response, /^250/)
    assert.equal((await stateOf(mail)).status, 'bounced')
  })
})

describe('an intake that is shutting down', () => {
  test('finishes receiving reports, closes other sessions and accepts no connections', async () => {
    const ending = await start()
    const mail = await makeMail(newProject())
    const { returnPath, raw } = reportOf(mail)
    const [idle, busy] = [await SmtpClient.open(ending.port), await SmtpClient.open(ending.port)]
    await busy.begin(returnPath)
    busy.write(raw)
    const stopped = ending.stop(patienceMs)
    assert.match((await idle.reply()) ?? '', /^421/)
    await assert.rejects(SmtpClient.open(ending.port))
    busy.write('\r\n.\r\n')
    assert.match((await busy.reply()) ?? '', /^250/)
    assert.match((await busy.reply()) ?? '', /^421/)
    await stopped
    assert.equal((await stateOf(mail)).status, 'bounced')
  })

  test('waits no longer than the grace period', async () => {
    const ending = await start()
    const client = await SmtpClient.open(ending.port)
    await client.begin(reportOf(await makeMail(newProject())).returnPath)
    await ending.stop(300)
    // The connection is closed without a reply.
    assert.equal(await client.reply(), undefined)
  })
})
