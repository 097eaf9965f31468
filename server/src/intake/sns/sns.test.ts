import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { sesMailTag } from '../../formats/ses-event.ts'
import { makeVerp } from '../../formats/verp.ts'
import { createHttpServer } from '../../platform/http/server.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { snsForgeries } from '../../testing/fixtures/sns-forgeries.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../testing/harness/database.ts'
import { feedbackIn } from '../../testing/harness/feedback.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { losingConnection, startPostgresProxy } from '../../testing/peers/postgres-proxy.ts'
import { type SesEventType, sesEvent } from '../../testing/peers/ses-events.ts'
import { sesConfigurationSet } from '../../testing/peers/ses-outbound.ts'
import { postSns, publishSns, startSnsPeer } from '../../testing/peers/sns-peer.ts'
import { snsRoute } from './sns.ts'

const database = await testDatabase()
const proxy = await startPostgresProxy(database.url)
const peer = await startSnsPeer()
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const logLines: string[] = []
const log = createLogger('debug', { write: (line) => void logLines.push(line) })
const otherTopic = 'arn:aws:sns:eu-west-1:111122223333:postern-other'
const app = createHttpServer({ log, trustedProxies: ['127.0.0.1'], isHttps: false })
snsRoute(app, {
  feedback: feedbackIn(openCells({ ...database, url: proxy.urlOf(database.url) }), log),
  ...{ keys, log, endpoint: peer.url },
  topicArns: [peer.topicArn, otherTopic],
})
const url = await app.listen({ host: '127.0.0.1', port: 0 })
cleanUp(() => app.close())
const { makeMail, stateOf, countsOf, suppressed } = mailRows(database)

let projects = 7000
const newMail = (options = {}) => makeMail(++projects, options)

function publishedMail(mail: TestMail, tag = makeVerp(keys, { ...mail, attempt: 1 })) {
  return {
    ...{ sesId: '0102-3', to: mail.address, from: 'shop@example.com' },
    ...{ configurationSet: sesConfigurationSet, tags: { [sesMailTag]: [tag] } },
  }
}

const eventOf = (mail: TestMail, type: SesEventType, changes: object = {}) =>
  sesEvent(publishedMail(mail), type, changes)
const postEvent = (mail: TestMail, type: SesEventType, changes: object = {}) =>
  publishSns(url, peer.notification(eventOf(mail, type, changes)))

let addresses = 0
/** Each request has a separate client address, so requests do not share a rate limit. */
const post = async (body: Parameters<typeof postSns>[1], headers: Record<string, string> = {}) => {
  addresses++
  const from = `10.0.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`
  return (await postSns(url, body, { 'x-forwarded-for': from, ...headers })).status
}

async function assertGenuineAccepted(): Promise<void> {
  const mail = await newMail()
  assert.equal(await post(peer.notification(eventOf(mail, 'Delivery'))), 200)
  assert.equal((await stateOf(mail)).status, 'delivered')
}

describe('a message that is not from a configured topic', () => {
  test('is rejected, regardless of its type', async (t) => {
    await assertGenuineAccepted()
    const mail = await newMail()
    const before = await stateOf(mail)
    const forgeries = await snsForgeries({ peer, otherTopic, event: eventOf(mail, 'Delivery') })
    const kinds = new Set(forgeries.map(({ what }) => what))
    assert.equal(kinds.size, forgeries.length)
    assert.ok(kinds.size >= 50, `${kinds.size} kinds`)
    t.diagnostic(`${kinds.size} kinds`)
    const taken: string[] = []
    for (const { what, body, headers } of forgeries) {
      const status = await post(body, headers)
      assert.ok([200, 400, 401, 413, 415].includes(status), `${what}: ${status}`)
      if (status === 200 || JSON.stringify(await stateOf(mail)) !== JSON.stringify(before)) taken.push(what)
    }
    assert.deepEqual(taken, [])
    assert.equal(peer.confirmed.length, 0, 'nothing was confirmed')
    await assertGenuineAccepted()
    assert.equal(await post(peer.notification(eventOf(mail, 'Delivery'))), 200, 'a genuine message')
    assert.equal((await stateOf(mail)).status, 'delivered')
  })

  test('causes no request except for the certificate', () => {
    for (const path of peer.fetched) assert.match(path, /^\/SimpleNotificationService-[0-9a-f]{32}\.pem$/)
  })

  test('gets 429 after too many rejected requests', async () => {
    const from = { 'x-forwarded-for': '192.0.2.99' }
    const statuses: number[] = []
    for (let n = 0; n < 70; n++) statuses.push((await postSns(url, '{}', from)).status)
    assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429])
    const mail = await newMail()
    const genuine = await postSns(url, peer.notification(eventOf(mail, 'Delivery')), from)
    assert.equal(genuine.status, 200, 'genuine messages are not counted')
  })

  test('causes a limited number of fetches', async () => {
    const before = peer.fetched.length
    for (let n = 0; n < 30; n++) {
      const path = `/SimpleNotificationService-${n.toString(16).padStart(32, 'a')}.pem`
      const fields = peer.notification('{}', { SigningCertURL: `https://sns.eu-west-1.amazonaws.com${path}` })
      await postSns(url, fields, { 'x-forwarded-for': '192.0.2.77' })
    }
    assert.ok(peer.fetched.length - before <= 10, `${peer.fetched.length - before} fetched`)
    await assertGenuineAccepted()
  })

  test('cannot cause a redirect to be followed', async () => {
    const signer = await peer.addSigner()
    const elsewhere = `/SimpleNotificationService-${'b'.repeat(32)}.pem`
    peer.serve(elsewhere, 302, '', { location: signer.path })
    const fields = peer.signed(
      {
        ...peer.notification('{}'),
        SigningCertURL: `https://sns.eu-west-1.amazonaws.com${elsewhere}`,
      },
      signer,
    )
    const before = peer.fetched.length
    assert.equal(await post(fields), 503)
    assert.deepEqual(peer.fetched.slice(before), [elsewhere])
  })
})

describe('a replayed message', () => {
  test('has no second effect, in any encoding', async () => {
    const mail = await newMail()
    const genuine = peer.notification(eventOf(mail, 'DeliveryDelay'))
    assert.equal(await post(genuine), 200)
    const after = await stateOf(mail)
    const reversed = Object.fromEntries(Object.entries(genuine).reverse())
    for (const again of [
      genuine,
      reversed,
      JSON.stringify(genuine, null, 4),
      { ...genuine, UnsubscribeURL: 'https://evil.example' },
      { ...genuine, More: 'x' },
      peer.signed({ ...genuine, MessageId: 'another' }),
      peer.signed({ ...genuine, TopicArn: otherTopic }),
      peer.signed({ ...genuine, Timestamp: new Date(Date.now() - 60_000).toISOString() }),
    ]) {
      assert.equal(await post(again), 200)
      assert.deepEqual(await stateOf(mail), after)
    }
    assert.equal(after.events.length, 1)
  })
})

describe('an event that identifies no known message', () => {
  test('is ignored, although its signature is valid', async () => {
    const mail = await newMail()
    const before = await stateOf(mail)
    const good = makeVerp(keys, { ...mail, attempt: 1 })
    const strangers = verpKeysOf([{ id: '1', key: randomBytes(32) }])
    const altered = `${good.slice(0, -1)}${good.endsWith('a') ? 'b' : 'a'}`
    const tags = [
      altered,
      makeVerp(strangers, { ...mail, attempt: 1 }),
      makeVerp(keys, { ...mail, messageId: mail.messageId.replace(/.$/, '0'), recipientNo: 7, attempt: 1 }),
      good.slice(7),
      '',
      createHmac('sha256', 'x').update('y').digest('hex'),
    ]
    const events = [
      ...tags.map((tag) => sesEvent(publishedMail(mail, tag), 'Bounce')),
      sesEvent({ ...publishedMail(mail), tags: {} }, 'Bounce'),
      eventOf(mail, 'Bounce').replace(`["${good}"]`, `"${good}"`),
      'no JSON',
      '[]',
      'null',
      '{}',
    ]
    for (const event of events) assert.equal(await post(peer.notification(event)), 200)
    assert.deepEqual(await stateOf(mail), before)
  })
})

describe('SES events', () => {
  const cases: [SesEventType, object, string, string | null][] = [
    ['Send', {}, 'sent', null],
    ['Delivery', {}, 'delivered', null],
    ['DeliveryDelay', {}, 'deferred', '4.4.1'],
    ['Bounce', {}, 'bounced', '5.1.1'],
    ['Bounce', { bounceType: 'Undetermined', bouncedRecipients: [] }, 'bounced', null],
    ['Bounce', { bounceType: 'Transient', bounceSubType: 'MailboxFull' }, 'failed', '5.1.1'],
    ['Bounce', { bounceSubType: 'OnAccountSuppressionList' }, 'failed', null],
    ['Bounce', { bounceSubType: 'Suppressed' }, 'failed', null],
    ['Complaint', {}, 'complained', null],
    ['Complaint', { complaintFeedbackType: undefined }, 'complained', null],
    ['Complaint', { complaintSubType: 'OnAccountSuppressionList' }, 'failed', null],
    ['Reject', {}, 'failed', null],
    ['Rendering Failure', {}, 'failed', null],
    ['Complaint', { complaintFeedbackType: 'not-spam' }, 'sent', null],
    ['Open', {}, 'sent', null],
    ['Click', {}, 'sent', null],
    ['Subscription', {}, 'sent', null],
  ]
  for (const [type, changes, status, code] of cases) {
    test(`${type} ${JSON.stringify(changes)}: sets the status ${status}`, async () => {
      const mail = await newMail()
      await postEvent(mail, type, changes)
      const state = await stateOf(mail)
      assert.equal(state.status, status)
      assert.equal(state.events.length, status === 'sent' ? 0 : 1)
      assert.equal(state.events[0]?.data['status'] ?? null, code)
    })
  }

  test('suppress the address after a bounce or a complaint, but not an address that SES did not send to', async () => {
    const mails = await Promise.all(Array.from({ length: 5 }, () => newMail()))
    const [gone, angry, spared, unsure, listed] = mails as [TestMail, TestMail, TestMail, TestMail, TestMail]
    await postEvent(gone, 'Bounce')
    await postEvent(angry, 'Complaint')
    await postEvent(spared, 'Complaint', { complaintSubType: 'OnAccountSuppressionList' })
    await postEvent(listed, 'Bounce', { bounceSubType: 'OnAccountSuppressionList' })
    await postEvent(unsure, 'Bounce', { bounceType: 'Undetermined' })
    const reasons = await Promise.all(
      mails.map(async ({ projectId }) => (await suppressed(projectId))[0]?.reason),
    )
    assert.deepEqual(reasons, ['bounce', 'complaint', undefined, undefined, undefined])
  })

  test('converge when they are duplicated, late or reordered', async () => {
    const chance = new Chance(seed)
    const message = `seed ${chance.seed}`
    for (let round = 0; round < 25; round++) {
      const mail = await newMail({ status: 'queued', dispatch: 'awaiting' })
      const types: SesEventType[] = ['Send', ...(chance.happens(0.5) ? ['DeliveryDelay' as const] : [])]
      types.push(chance.pick(['Delivery', 'Bounce'] as const))
      const all = types.map((type) => peer.notification(eventOf(mail, type)))
      const posts = [...all, ...all].toSorted(() => chance.next() - 0.5)
      await Promise.all(posts.map((fields) => publishSns(url, fields)))
      const { status, dispatch, events } = await stateOf(mail)
      assert.equal(status, types.at(-1) === 'Bounce' ? 'bounced' : 'delivered', message)
      assert.equal(dispatch, null, message)
      const names = events.map(({ type }) => type)
      assert.equal(names.filter((name) => name === 'message.sent').length, 1, message)
      assert.equal(new Set(names).size, names.length, `${message}: ${names}`)
      assert.equal((await countsOf(mail.projectId))['sent'], 1, message)
    }
  })

  for (const when of ['onStatement', 'onDone'] as const) {
    test(`are retried when the database connection is lost (${when}) and applied once`, async () => {
      const mail = await newMail()
      const fields = peer.notification(eventOf(mail, 'Delivery'))
      assert.equal(await losingConnection(proxy, when, () => post(fields)), 503)
      await publishSns(url, fields)
      assert.equal((await stateOf(mail)).events.length, 1)
    })
  }
})

describe('a subscription', () => {
  test('to a configured topic is confirmed at the configured host', async () => {
    const fields = peer.confirmation('SubscriptionConfirmation', { SubscribeURL: 'https://evil.example/x' })
    assert.equal(await post(fields), 200)
    const [query] = peer.confirmed.splice(0)
    assert.deepEqual(Object.fromEntries(query ?? []), {
      ...{ Action: 'ConfirmSubscription', Version: '2010-03-31' },
      ...{ TopicArn: peer.topicArn, Token: fields['Token'] },
    })
  })

  test('that SNS does not confirm is retried', async () => {
    const fields = peer.confirmation('SubscriptionConfirmation')
    peer.failNext(500)
    assert.equal(await post(fields), 503)
    assert.equal(await post(fields), 200)
    assert.equal(peer.confirmed.splice(0).length, 1)
  })

  test('that ends is logged, without its token', async () => {
    const fields = peer.confirmation('UnsubscribeConfirmation')
    assert.equal(await post(fields), 200)
    assert.equal(peer.confirmed.length, 0)
    assert.ok(logLines.some((line) => line.includes('SNS ended the subscription')))
    assert.ok(!logLines.some((line) => line.includes(fields['Token'] ?? 'token')))
  })

  test('with signature version 1 is rejected, and the log explains how to fix it', async () => {
    await post(peer.notification('{}', { SignatureVersion: '1' }))
    assert.ok(logLines.some((line) => /set-topic-attributes .*SignatureVersion/.test(line)))
  })
})
