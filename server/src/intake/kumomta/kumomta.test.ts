import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { FeedbackGroups } from '../../core/mail/feedback/feedback-groups.ts'
import { returnPathOf, type VerpKeys, verpKeysOf } from '../../core/mail/feedback/match-bounce.ts'
import { makeVerp } from '../../formats/verp.ts'
import { createHttpServer } from '../../platform/http/server.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { registry } from '../../platform/telemetry/metrics.ts'
import { mailRows, type TestMail } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openCells, testDatabase } from '../../testing/harness/database.ts'
import { feedbackRules } from '../../testing/harness/feedback.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { type KumoRecordType, kumoRecord } from '../../testing/peers/kumo-records.ts'
import { losingConnection, startPostgresProxy } from '../../testing/peers/postgres-proxy.ts'
import { kumomtaRoute } from './kumomta.ts'

const database = await testDatabase()
const proxy = await startPostgresProxy(database.url)
const keys = verpKeysOf([{ id: '1', key: randomBytes(32) }])
const tokens = [randomBytes(32).toString('hex'), randomBytes(24).toString('base64')] as const
const logLines: string[] = []
const log = createLogger('debug', { write: (line) => void logLines.push(line) })
const cells = openCells({ ...database, url: proxy.urlOf(database.url) })
const app = createHttpServer({ log, trustedProxies: ['127.0.0.1'], isHttps: false })
// Includes the codes of Expiration and AdminBounce, which must not suppress an address.
const suppressOn = new Set(['5.1.1', '5.2.1', '5.4.7', '5.7.1'])
const feedback = new FeedbackGroups({ ...feedbackRules, cells, suppressOn, log })
kumomtaRoute(app, { keys, feedback, log, tokens })
const url = await app.listen({ host: '127.0.0.1', port: 0 })
cleanUp(() => app.close())
const { makeMail, stateOf, countsOf, suppressed } = mailRows(database)

let projects = 8000
const newMail = (options = {}) => makeMail(++projects, options)

const pathOf = (mail: TestMail, signers: VerpKeys = keys): string =>
  returnPathOf(signers, { ...mail, attempt: 1 }, 'example.com')
const recordOf = (mail: TestMail, type: KumoRecordType, changes: object = {}) =>
  kumoRecord({ sender: pathOf(mail), recipient: mail.address }, type, changes)

let clients = 0
interface Options {
  authorization?: string | undefined
  type?: string
  from?: string
}

/** Each request has a separate client address, so requests do not share a rate limit. */
async function postText(
  body: string,
  { authorization = `Bearer ${tokens[0]}`, type = 'application/json', from }: Options = {},
) {
  clients++
  const client = from ?? `10.1.${Math.floor(clients / 250)}.${(clients % 250) + 1}`
  const response = await fetch(new URL('/v1/intake/kumomta', url), {
    method: 'POST',
    headers: { 'content-type': type, 'x-forwarded-for': client, ...(authorization && { authorization }) },
    body,
  })
  const answer = (await response.json()) as { error?: string; message?: string; status?: string }
  return { status: response.status, error: answer.error, message: answer.message ?? '' }
}

const post = async (records: unknown, options: Options = {}): Promise<number> =>
  (await postText(JSON.stringify(records), options)).status

async function postRecord(mail: TestMail, type: KumoRecordType, changes: object = {}): Promise<void> {
  assert.equal(await post([recordOf(mail, type, changes)]), 200)
}

/** How many records of a batch were counted as ignored. */
async function ignoredOf(records: readonly unknown[]): Promise<number> {
  const before = await ignoredReports()
  assert.equal(await post(records), 200)
  return (await ignoredReports()) - before
}

async function ignoredReports(): Promise<number> {
  const metric = await registry.getSingleMetric('postern_reports_total')?.get()
  const isIgnored = ({ kind, outcome }: Record<string, unknown>) => kind === 'none' && outcome === 'ignored'
  return metric?.values.find(({ labels }) => isIgnored(labels))?.value ?? assert.fail()
}

describe('a request without a valid token', () => {
  const [first] = tokens
  const wrong: [what: string, authorization: string][] = [
    ['none', ''],
    ['a wrong token', `Bearer ${randomBytes(32).toString('hex')}`],
    ['the beginning of a token', `Bearer ${first.slice(0, -1)}`],
    ['a longer token', `Bearer ${first}0`],
    ['a token in upper case', `Bearer ${first.toUpperCase()}`],
    ['all tokens', `Bearer ${tokens.join(', ')}`],
    ['an empty token', 'Bearer '],
    ['another scheme', `Basic ${Buffer.from(`kumomta:${first}`).toString('base64')}`],
    ['no scheme', first],
  ]
  for (const [what, authorization] of wrong) {
    test(`is rejected, and its records have no effect: ${what}`, async () => {
      const mail = await newMail()
      const before = await stateOf(mail)
      const { status, error } = await postText(JSON.stringify([recordOf(mail, 'Delivery')]), {
        authorization,
      })
      assert.deepEqual([status, error], [401, 'unauthenticated'])
      assert.deepEqual(await stateOf(mail), before)
    })
  }

  test('is rejected before its body is read', async () => {
    const bodies: [body: string, type?: string][] = [
      ['no JSON'],
      ['[]', 'text/plain'],
      ['x'.repeat(1024 * 1024 + 1)],
    ]
    for (const [body, type] of bodies) {
      const { status } = await postText(body, { authorization: '', ...(type && { type }) })
      assert.equal(status, 401)
    }
  })

  test('gets 429 after too many such requests, but a valid token is still accepted', async () => {
    const from = '192.0.2.99'
    const statuses: number[] = []
    for (let n = 0; n < 70; n++) statuses.push(await post([], { authorization: 'Bearer x', from }))
    assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429])
    const mail = await newMail()
    assert.equal(await post([recordOf(mail, 'Delivery')], { from }), 200)
    assert.equal((await stateOf(mail)).status, 'delivered')
  })

  test('never causes a token to be logged', () => {
    assert.ok(logLines.some((line) => line.includes('no valid token')))
    for (const token of tokens) assert.ok(!logLines.some((line) => line.includes(token)))
  })
})

test('every configured token is accepted, in any spelling of the scheme', async () => {
  for (const authorization of [...tokens.map((token) => `Bearer ${token}`), `bearer  ${tokens[1]}`]) {
    const mail = await newMail()
    assert.equal(await post([recordOf(mail, 'Delivery')], { authorization }), 200)
    assert.equal((await stateOf(mail)).status, 'delivered')
  }
})

describe('the route', () => {
  const call = (base: string, path: string, authorization: string) =>
    fetch(new URL(path, base), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: '[]',
    }).then(async (response) => [response.status, await response.text()])

  test('does not exist unless a token is configured', async () => {
    const api = await startApi(database, { POSTERN_KUMOMTA_TOKENS: '' }, { waitsForJobs: false })
    for (const authorization of ['', 'Bearer ', 'Bearer undefined']) {
      const answer = await call(api.url, '/v1/intake/kumomta', authorization)
      assert.equal(answer[0], 404)
      assert.deepEqual(answer, await call(api.url, '/v1/intake/unknown', authorization))
    }
  })

  test('is served with the configured tokens and keys, and is not in the OpenAPI document', async () => {
    const [token] = tokens
    const api = await startApi(database, { POSTERN_KUMOMTA_TOKENS: token }, { waitsForJobs: false })
    assert.equal((await call(api.url, '/v1/intake/kumomta', 'Bearer '))[0], 401)
    const mail = await newMail()
    const sender = pathOf(mail, verpKeysOf(api.context.config.masterKeys))
    const response = await fetch(new URL('/v1/intake/kumomta', api.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify([recordOf(mail, 'Bounce', { sender })]),
    })
    assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }])
    assert.equal((await stateOf(mail)).status, 'bounced')
    const document = await (await fetch(new URL('/openapi.json', api.url))).text()
    assert.ok(document.includes('/v1/messages') && !document.includes('kumomta'))
  })
})

describe('KumoMTA log records', () => {
  const temporary = {
    response: { code: 451, enhanced_code: { class: 4, subject: 4, detail: 1 }, content: 'x' },
  }
  const plain = (code: number) => ({ response: { code, enhanced_code: null, content: 'no reason given' } })
  const cases: [KumoRecordType, object, status: string, code: string | null][] = [
    ['Delivery', {}, 'delivered', '2.0.0'],
    ['TransientFailure', {}, 'deferred', '4.7.1'],
    // KumoMTA retries after 552 at RCPT (RFC 5321 §4.5.3.1.10).
    ['TransientFailure', plain(552), 'deferred', null],
    ['Bounce', {}, 'bounced', '5.1.1'],
    ['Bounce', plain(550), 'bounced', null],
    ['Bounce', temporary, 'failed', '4.4.1'],
    ['Bounce', plain(451), 'failed', null],
    ['Expiration', {}, 'failed', '5.4.7'],
    ['AdminBounce', {}, 'failed', '5.7.1'],
    ['OOB', {}, 'bounced', '5.2.1'],
    ['OOB', temporary, 'failed', '4.4.1'],
    ['Feedback', {}, 'complained', null],
    ['Feedback', { feedback_report: { feedback_type: 'not-spam' } }, 'sent', null],
    ['Feedback', { feedback_report: null }, 'sent', null],
    ['Delivery', { reception_protocol: 'LogRecord' }, 'sent', null],
    ['Bounce', { reception_protocol: 'LogRecord' }, 'sent', null],
    ['Reception', {}, 'sent', null],
    ['Rejection', {}, 'sent', null],
    ['Delayed', {}, 'sent', null],
    ['AdminRebind', {}, 'sent', null],
    ['XferOut', {}, 'sent', null],
  ]
  for (const [type, changes, status, code] of cases) {
    test(`${type} ${JSON.stringify(changes)}: sets the status ${status}`, async () => {
      const mail = await newMail()
      await postRecord(mail, type, changes)
      const state = await stateOf(mail)
      assert.equal(state.status, status)
      assert.equal(state.events.length, status === 'sent' ? 0 : 1)
      assert.equal(state.events[0]?.data['status'] ?? null, code)
    })
  }

  test('store the reply of the remote server', async () => {
    const mail = await newMail()
    await postRecord(mail, 'Bounce')
    const { reply, events } = await stateOf(mail)
    assert.equal(reply, '550 5.1.1 no mailbox here by that name')
    assert.equal(events[0]?.data['diagnostic'], reply)
  })

  test('suppress the address after a bounce or a complaint, but not if KumoMTA or its operator gave up', async () => {
    const types = ['Bounce', 'OOB', 'Feedback', 'Expiration', 'AdminBounce', 'TransientFailure'] as const
    const reasons = await Promise.all(
      types.map(async (type) => {
        const mail = await newMail()
        await postRecord(mail, type)
        return (await suppressed(mail.projectId))[0]?.reason
      }),
    )
    assert.deepEqual(reasons, ['bounce', 'bounce', 'complaint', undefined, undefined, undefined])
  })

  test('about a complaint are matched by every address that the complaint can contain', async () => {
    const report = { feedback_type: 'abuse', original_mail_from: null, original_message: null }
    const changesOf: ((mail: TestMail) => object)[] = [
      (mail) => ({ recipient: pathOf(mail), feedback_report: report }),
      (mail) => ({ feedback_report: { ...report, original_mail_from: `<${pathOf(mail)}>` } }),
      (mail) => ({ feedback_report: { ...report, original_message: `Return-Path: <${pathOf(mail)}>\n\n` } }),
      (mail) => {
        const ref = makeVerp(keys, { ...mail, attempt: 1 })
        return {
          feedback_report: { ...report, original_message: `From: a@b.example\nX-Postern-Ref: ${ref}\n\n` },
        }
      },
    ]
    for (const changes of changesOf) {
      const mail = await newMail()
      await postRecord(mail, 'Feedback', changes(mail))
      assert.equal((await stateOf(mail)).status, 'complained')
    }
  })

  test('about other mail are counted and ignored', async () => {
    const mail = await newMail()
    const before = await stateOf(mail)
    const good = pathOf(mail)
    const strangers = verpKeysOf([{ id: '1', key: randomBytes(32) }])
    const senders = [
      ...['', 'news@example.com', good.slice(7), good.slice(0, good.indexOf('@')), `x${good}`],
      ...[pathOf(mail, strangers), good.replace(/.@/, '!@'), good.replaceAll(/[a-z]/g, 'a')],
    ]
    const records = senders.map((sender) => recordOf(mail, 'Bounce', { sender }))
    assert.equal(await ignoredOf(records), records.length)
    assert.deepEqual(await stateOf(mail), before)
  })

  test('are accepted one at a time, in batches and as newline-delimited JSON', async () => {
    const bodies: [type: string, body: (records: object[]) => string][] = [
      ['application/json', ([record]) => `${JSON.stringify(record)}\n`],
      ['application/json; charset=utf-8', (records) => JSON.stringify(records)],
      ['application/x-ndjson', (records) => records.map((record) => `${JSON.stringify(record)}\n`).join('')],
      ['Application/X-NDJSON', (records) => records.map((record) => JSON.stringify(record)).join('\r\n\r\n')],
    ]
    for (const [type, bodyOf] of bodies) {
      const mails = await Promise.all(
        Array.from({ length: type === 'application/json' ? 1 : 3 }, () => newMail()),
      )
      const body = bodyOf(mails.map((mail) => recordOf(mail, 'Delivery')))
      assert.equal((await postText(body, { type })).status, 200, type)
      for (const mail of mails) assert.equal((await stateOf(mail)).status, 'delivered', type)
    }
  })

  test('are applied in their order in the batch', async () => {
    const mail = await newMail()
    const types = ['TransientFailure', 'Delivery', 'OOB', 'Feedback'] as const
    assert.equal(await post(types.map((type) => recordOf(mail, type))), 200)
    assert.deepEqual(
      (await stateOf(mail)).events.map(({ type }) => type),
      ['message.deferred', 'message.delivered', 'message.bounced'],
    )
    assert.equal((await suppressed(mail.projectId))[0]?.reason, 'complaint')
  })

  test('converge when they are duplicated, late or reordered', async () => {
    const chance = new Chance(seed)
    const message = `seed ${chance.seed}`
    for (let round = 0; round < 15; round++) {
      const mail = await newMail({ status: 'queued', dispatch: 'awaiting' })
      const types: KumoRecordType[] = [
        'Reception',
        ...(chance.happens(0.5) ? ['TransientFailure' as const] : []),
      ]
      types.push(chance.pick(['Delivery', 'Bounce'] as const))
      const all = types.map((type) => recordOf(mail, type))
      const records = [...all, ...all].toSorted(() => chance.next() - 0.5)
      const half = chance.below(records.length)
      const statuses = await Promise.all([post(records.slice(0, half)), post(records.slice(half))])
      assert.deepEqual(statuses, [200, 200], message)
      const { status, dispatch, events } = await stateOf(mail)
      assert.equal(status, types.at(-1) === 'Bounce' ? 'bounced' : 'delivered', message)
      assert.equal(dispatch, null, message)
      const names = events.map(({ type }) => type)
      assert.equal(new Set(names).size, names.length, `${message}: ${names}`)
      assert.equal((await countsOf(mail.projectId))['sent'], 1, message)
    }
  })
})

describe('a batch', () => {
  const eventsOf = async (mails: readonly TestMail[]): Promise<number> =>
    (await Promise.all(mails.map(stateOf))).reduce((sum, { events }) => sum + events.length, 0)

  test('is applied once when it is repeated whole, in any encoding', async () => {
    const mails = await Promise.all(Array.from({ length: 30 }, () => newMail()))
    const types = ['Delivery', 'Bounce', 'TransientFailure', 'OOB', 'Expiration'] as const
    const records = mails.map((mail, n) => recordOf(mail, types[n % types.length] ?? 'Delivery'))
    assert.equal(await post(records), 200)
    const after = await Promise.all(mails.map(stateOf))
    assert.equal(await eventsOf(mails), mails.length)
    const encodings = [
      records,
      records.toReversed(),
      records.map((record) => Object.fromEntries(Object.entries(record).reverse())),
      records.map((record) => ({ ...record, headers: { Subject: 'x' }, meta: { tenant: 'x' }, more: null })),
    ]
    for (const again of encodings) {
      assert.equal(await post(again), 200)
      assert.deepEqual(await Promise.all(mails.map(stateOf)), after)
    }
    const counts = await Promise.all(mails.map(({ projectId }) => countsOf(projectId)))
    assert.deepEqual(new Set(counts.flatMap((one) => Object.values(one))), new Set([1]))
  })

  test('is applied without its malformed records, which are counted and logged', async () => {
    const mails = [await newMail(), await newMail()] as const
    const records = [
      ...[null, 5, 'Delivery', [], {}, { type: 'Delivery' }],
      recordOf(mails[0], 'Delivery'),
      { ...recordOf(mails[0], 'Bounce'), id: undefined },
      recordOf(mails[1], 'Bounce', { feedback_report: { extensions: { constructor: ['x'] } } }),
    ]
    logLines.length = 0
    assert.equal(await ignoredOf(records), 7)
    assert.deepEqual(await Promise.all(mails.map(async (mail) => (await stateOf(mail)).status)), [
      'delivered',
      'bounced',
    ])
    assert.ok(
      logLines.some((line) => line.includes('log records malformed') && line.includes('"malformed":7')),
    )
  })

  test('in newline-delimited JSON is applied without the lines that are not JSON', async () => {
    const mail = await newMail()
    const body = `{"type":\n${JSON.stringify(recordOf(mail, 'Delivery'))}\n{"type":"Deli`
    assert.equal((await postText(body, { type: 'application/x-ndjson' })).status, 200)
    assert.equal((await stateOf(mail)).status, 'delivered')
  })

  test('that is empty is accepted', async () => {
    assert.equal(await post([]), 200)
  })

  test('that is not JSON gets 400', async () => {
    for (const [body, type] of [
      ['', 'application/json'],
      ['{"type":', 'application/json'],
      ['{}\n{}', 'application/json'],
      ['', 'application/x-ndjson'],
      ['\n\n', 'application/x-ndjson'],
      ['type=Delivery\nx', 'application/x-ndjson'],
    ] as const) {
      const { status, error } = await postText(body, { type })
      assert.deepEqual([status, error], [400, 'invalid_json'], `${type}: ${body}`)
    }
  })

  test('in another format gets 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml']) {
      assert.equal((await postText('[]', { type })).status, 415, type)
    }
  })

  test('is limited to 1,000 records and 1 MiB', async () => {
    const mail = await newMail()
    const foreign = Array.from({ length: 999 }, (_, n) => ({ type: 'Reception', id: String(n) }))
    assert.equal(await post([...foreign, recordOf(mail, 'Delivery')]), 200)
    assert.equal((await stateOf(mail)).status, 'delivered')
    const many = [...foreign, {}, {}]
    const lines = many.map((record) => JSON.stringify(record)).join('\n')
    for (const answer of [
      await postText(JSON.stringify(many)),
      await postText(lines, { type: 'application/x-ndjson' }),
    ]) {
      assert.deepEqual([answer.status, answer.error], [413, 'body_too_large'])
      assert.match(answer.message, /more than 1000 log records/)
    }
    const large = JSON.stringify([{ type: 'Reception', id: '1', more: 'x'.repeat(1024 * 1024) }])
    assert.equal((await postText(large)).status, 413)
  })

  for (const when of ['onStatement', 'onDone'] as const) {
    test(`is retried when the database connection is lost (${when}) and applied once`, async () => {
      const mails = await Promise.all(Array.from({ length: 5 }, () => newMail()))
      const records = [
        ...mails.map((mail) => recordOf(mail, 'Delivery')),
        ...mails.map((mail) => recordOf(mail, 'OOB')),
      ]
      assert.equal(await losingConnection(proxy, when, () => post(records)), 503)
      const isTaken = async () => (await post(records)) === 200
      await eventually('the API accepts the batch', isTaken, { everyMs: 50 })
      for (const mail of mails) {
        const { status, events } = await stateOf(mail)
        assert.equal(status, 'bounced')
        assert.deepEqual(
          events.map(({ type }) => type),
          ['message.delivered', 'message.bounced'],
        )
        assert.deepEqual(await countsOf(mail.projectId), { delivered: 1, bounced: 1 })
      }
    })
  }
})
