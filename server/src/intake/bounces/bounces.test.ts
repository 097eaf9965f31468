import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import nodemailer from 'nodemailer'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { srsKeysOf } from '../../core/mail/feedback/srs-path.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { type ReportName, reportAbout } from '../../testing/fixtures/mail-reports.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { localReporters, loopback, testAnalysisThreads } from '../../testing/harness/analysis-threads.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../testing/harness/database.ts'
import { feedbackIn } from '../../testing/harness/feedback.ts'
import { type BounceDeps, startBounces } from './bounces.ts'

/** Reports sent over real SMTP by a well-behaved client. */
const database = await testDatabase()
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const logLines: string[] = []
const log = createLogger('debug', { write: (line) => void logLines.push(line) })
const deps: BounceDeps = {
  feedback: feedbackIn(openCells(database, { poolSize: 6 }), log),
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
const listener = await startBounces(deps)
cleanUp(() => listener.stop(1000))
const { makeMail, stateOf, countsOf, suppressed } = mailRows(database)

let projects = 2000
const newProject = () => ++projects

const transport = nodemailer.createTransport({ host: '127.0.0.1', port: listener.port, pool: true })
cleanUp(async () => transport.close())

/** Returns the reply to DATA. */
async function send(to: string, raw: string, from = ''): Promise<string> {
  const sent = await transport.sendMail({ envelope: { from, to: [to] }, raw })
  return sent.response
}

const report = (mail: TestMail, name: ReportName, changes?: Record<string, string>) => {
  const { returnPath, raw } = reportAbout(keys, mail, name, changes)
  return send(returnPath, raw)
}

const complain = (mail: TestMail, changes?: Record<string, string>, to = 'fbl@bounces.example.org') =>
  send(to, reportAbout(keys, mail, 'complaint', changes).raw, 'reports@feedback.example.net')

describe('a report', () => {
  const expected: [name: ReportName, becomes: string, status: string, reply: RegExp][] = [
    ['postfix-relayed', 'delivered', '2.0.0', /250 2\.0\.0 Kept/],
    ['postfix-delayed', 'deferred', '4.2.2', /451 4\.2\.2 Mailbox full/],
    [
      'postfix-unknown-user',
      'bounced',
      '5.1.1',
      /550 5\.1\.1 <.*>: Recipient address rejected: User unknown/,
    ],
    ['postfix-refused', 'bounced', '5.7.1', /554 5\.7\.1 Message refused/],
    ['postfix-expired', 'failed', '4.2.2', /451 4\.2\.2 Mailbox full/],
  ]
  for (const [name, becomes, status, reply] of expected) {
    test(`from Postfix, ${name}, sets the status ${becomes}`, async () => {
      const project = newProject()
      const mail = await makeMail(project, { address: 'Someone@Example.net' })
      assert.match(await report(mail, name), /^250 2\.0\.0/)
      const after = await stateOf(mail)
      assert.equal(after.status, becomes)
      assert.match(after.reply ?? '', reply)
      assert.deepEqual(
        after.events.map(({ type, data }) => [type, data['recipient'], data['status']]),
        [[`message.${becomes}`, mail.address, status]],
      )
      assert.deepEqual(await countsOf(project), { [becomes]: 1 })
      assert.equal((await suppressed(project)).length, status === '5.1.1' ? 1 : 0)
      assert.match(await report(mail, name), /^250/, 'once more')
      assert.deepEqual(await stateOf(mail), after)
    })
  }

  test('that is older than the current status changes nothing', async () => {
    const mail = await makeMail(newProject())
    await report(mail, 'postfix-relayed')
    await report(mail, 'postfix-delayed')
    assert.equal((await stateOf(mail)).status, 'delivered')
    await report(mail, 'postfix-unknown-user')
    assert.equal((await stateOf(mail)).status, 'bounced', 'a late bounce is applied')
    await report(mail, 'postfix-relayed')
    assert.equal((await stateOf(mail)).status, 'bounced')
  })

  test('that arrives before the worker records its result completes the delivery', async () => {
    const mail = await makeMail(newProject(), { status: 'queued', dispatch: 'leased' })
    await report(mail, 'postfix-relayed')
    const { status, dispatch, events } = await stateOf(mail)
    assert.deepEqual([status, dispatch], ['delivered', null])
    assert.deepEqual(
      events.map(({ type }) => type),
      ['message.sent', 'message.delivered'],
    )
  })

  test('that arrives 100 times concurrently is applied once', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    const many = nodemailer.createTransport({
      ...{ host: '127.0.0.1', port: listener.port, pool: true },
      maxConnections: 20,
    })
    const { returnPath, raw } = reportAbout(keys, mail, 'postfix-unknown-user')
    const sent = await Promise.all(
      Array.from({ length: 100 }, () => many.sendMail({ envelope: { from: '', to: [returnPath] }, raw })),
    )
    many.close()
    assert.ok(sent.every(({ response }) => response.startsWith('250')))
    assert.deepEqual(await countsOf(project), { bounced: 1 })
    assert.equal((await stateOf(mail)).events.length, 1)
  })

  test('about several recipients applies to the one that the return path identifies', async () => {
    const mail = await makeMail(newProject(), { address: 'one@example.net' })
    const { returnPath, raw } = reportAbout(keys, mail, 'postfix-unknown-user')
    const other = raw.replace(
      /(Final-Recipient.*?\r\n)\r\n/s,
      'Final-Recipient: rfc822; two@example.net\r\nAction: delivered\r\nStatus: 2.0.0\r\n\r\n$1\r\n',
    )
    assert.notEqual(other, raw)
    await send(returnPath, other)
    assert.equal((await stateOf(mail)).status, 'bounced')
  })

  test('about an unknown message is accepted, ignored and logged', async () => {
    const mail = await makeMail(newProject())
    const stranger = { ...mail, messageId: mail.messageId.replace(/.{4}$/, '0000') }
    assert.match(await report(stranger, 'postfix-unknown-user'), /^250/)
    assert.equal((await stateOf(mail)).status, 'sent')
    assert.match(logLines.join(''), /report ignored, unknown message/)
  })

  test('is the only kind of mail processed at a return path; automatic replies and other mail are accepted and ignored', async () => {
    const project = newProject()
    const mail = await makeMail(project)
    assert.match(await report(mail, 'vacation'), /^250/)
    const { returnPath } = reportAbout(keys, mail, 'vacation')
    for (const raw of [
      'Subject: Buy now\r\n\r\nBuy.\r\n',
      '',
      'Content-Type: multipart/report; report-type=delivery-status; boundary=x\r\n\r\n--x\r\n',
      `Content-Type: multipart/mixed; boundary=x\r\n\r\n${'--x\r\n\r\n'.repeat(10_000)}`,
      randomBytes(50_000).toString('base64').replace(/.{76}/g, '$&\r\n'),
    ]) {
      assert.match(await send(returnPath, raw, 'stranger@example.com'), /^250/)
    }
    const { status, events } = await stateOf(mail)
    assert.deepEqual([status, events], ['sent', []])
    assert.deepEqual(await countsOf(project), {})
    assert.match(logLines.join(''), /mail ignored, not a report/)
  })
})

describe('a complaint', () => {
  test('suppresses the address, regardless of which field identifies the message', async () => {
    const project = newProject()
    const traces = ['Original-Mail-From', 'Return-Path', 'X-Postern-Ref']
    for (const kept of traces) {
      const mail = await makeMail(project, { status: 'delivered' })
      const { raw } = reportAbout(keys, mail, 'complaint')
      const without = traces
        .filter((trace) => trace !== kept)
        .reduce((text, trace) => text.replace(new RegExp(`^${trace}: .*\r\n`, 'm'), ''), raw)
      assert.match(await send('Abuse@Bounces.Example.org', without), /^250/)
      assert.equal((await stateOf(mail)).status, 'complained', kept)
    }
    assert.deepEqual(await countsOf(project), { complained: 3 })
    assert.deepEqual(
      (await suppressed(project)).map(({ reason }) => reason),
      ['complaint', 'complaint', 'complaint'],
    )
  })

  test('that arrives at the return path is also applied', async () => {
    const mail = await makeMail(newProject())
    const { returnPath, raw } = reportAbout(keys, mail, 'complaint', {
      'return-path': 'a@b.example',
      ref: '',
    })
    await send(returnPath, raw)
    assert.equal((await stateOf(mail)).status, 'complained')
  })

  test('is ignored if its type is not-spam or it does not identify a known message', async () => {
    const mail = await makeMail(newProject())
    await complain(mail, { type: 'not-spam' })
    await complain(mail, { type: 'auth-failure' })
    await complain(mail, { 'return-path': 'bounce-aaaa@bounces.customer.example', ref: 'x' })
    await send('fbl@bounces.example.org', reportAbout(keys, mail, 'postfix-unknown-user').raw)
    assert.equal((await stateOf(mail)).status, 'sent')
  })
})

describe('an address', () => {
  const refusedWith = (to: string, raw = 'Subject: x\r\n\r\nx\r\n') =>
    send(to, raw).then(
      (reply) => reply,
      (error: { response?: string }) => error.response,
    )

  test('that is neither a return path nor for complaints is rejected', async () => {
    for (const to of [
      'someone@bounces.example.org',
      'postmaster@bounces.example.org',
      'bounce-@bounces.example.org',
      'fbl@example.org',
      'abuse@bounces.example.org.evil.example',
      'xfbl@bounces.example.org',
      'fbl+x@bounces.example.org',
    ]) {
      assert.match((await refusedWith(to)) ?? '', /^550 5\.1\.1/, to)
    }
  })

  test('is rejected if any character of its token is changed or it is signed with another key', async () => {
    const mail = await makeMail(newProject())
    const { returnPath } = reportAbout(keys, mail, 'postfix-relayed')
    const [local = '', domain] = returnPath.split('@')
    const quick = await startBounces(deps)
    const other = nodemailer.createTransport({ host: '127.0.0.1', port: quick.port, pool: true })
    const prefix = local.indexOf('-') + 1
    let refused = 0
    for (let at = prefix; at < local.length; at++) {
      const forged = `${local.slice(0, at)}${local[at] === 'a' ? 'b' : 'a'}${local.slice(at + 1)}@${domain}`
      await assert.rejects(
        other.sendMail({ envelope: { from: '', to: [forged] }, raw: 'x' }),
        /550 5\.1\.1/,
        forged,
      )
      refused++
    }
    const strangers = verpKeysOf([{ id: '1', key: randomBytes(32) }])
    const foreign = reportAbout(strangers, mail, 'postfix-relayed').returnPath
    await assert.rejects(other.sendMail({ envelope: { from: '', to: [foreign] }, raw: 'x' }), /550 5\.1\.1/)
    other.close()
    await quick.stop(1000)
    assert.equal(refused, local.length - prefix)
    assert.equal((await stateOf(mail)).status, 'sent')
  })

  test('that is unknown causes a disconnect if it is tried too often', async () => {
    const fresh = await startBounces(deps)
    const guesser = nodemailer.createTransport({ host: '127.0.0.1', port: fresh.port, pool: true })
    const guess = (n: number) =>
      guesser
        .sendMail({ envelope: { from: '', to: [`guess${n}@bounces.example.org`] }, raw: 'x' })
        .then(String, (error: Error) => error.message)
    const answers: string[] = []
    for (let n = 0; n < 105; n++) answers.push(await guess(n))
    guesser.close()
    assert.equal(answers.filter((answer) => /550 5\.1\.1/.test(answer)).length, 100)
    assert.match(answers.at(-1) ?? '', /421 4\.7\.0/)
    await fresh.stop(1000)
  })
})
