import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { type KumoRecordType, kumoRecord } from '../testing/peers/kumo-records.ts'
import { readKumoLogRecord } from './kumo-log-record.ts'

const local = `bounce-${'a2'.repeat(24)}`
const mail = { sender: `${local}@bounces.example.com`, recipient: 'anna@example.net' }
const read = (type: KumoRecordType, changes: object = {}) =>
  readKumoLogRecord(kumoRecord(mail, type, changes))
/** The parsed record without its identity. */
const without = (type: KumoRecordType, changes: object = {}) => {
  const { identity, ...record } = read(type, changes) ?? assert.fail()
  assert.ok(identity.length > 0)
  return record
}
const usual = { isAboutLogRecord: false, returnPaths: [mail.sender], feedbackType: null }

describe('a KumoMTA log record', () => {
  test('is parsed as documented', () => {
    assert.deepEqual(without('Delivery'), {
      ...{ ...usual, type: 'Delivery', code: 250, status: '2.0.0' },
      diagnostic: '250 2.0.0 OK queued as 4XyZ',
    })
    assert.deepEqual(without('Bounce'), {
      ...{ ...usual, type: 'Bounce', code: 550, status: '5.1.1' },
      diagnostic: '550 5.1.1 no mailbox here by that name',
    })
    assert.deepEqual(without('TransientFailure'), {
      ...{ ...usual, type: 'TransientFailure', code: 451, status: '4.7.1' },
      diagnostic: '451 4.7.1 greylisted, try again later',
    })
    assert.deepEqual(without('OOB'), {
      ...{ ...usual, type: 'OOB', code: 550, status: '5.2.1' },
      diagnostic: '550 5.2.1 mailbox disabled',
    })
    assert.deepEqual(without('Delayed'), {
      ...{ ...usual, type: 'Delayed', code: 400, status: null },
      diagnostic: '400 Context: MessageRateThrottle. Next due in 10s',
    })
    assert.deepEqual(without('Reception'), {
      ...{ ...usual, type: 'Reception', code: 250, status: null, diagnostic: '250' },
    })
  })

  test('about a complaint has the addresses that the complaint contains', () => {
    assert.deepEqual(without('Feedback'), {
      ...{ ...usual, type: 'Feedback', code: 250, status: null, diagnostic: '250' },
      ...{ returnPaths: ['fbl@mta.example', mail.sender], feedbackType: 'abuse' },
    })
    const report = {
      ...{ feedback_type: 'Abuse; x', original_mail_from: `<${mail.sender}>` },
      original_message: `Return-Path: <a@b.example>\nSubject: x\nX-Postern-Ref:\n ${local}\n\nX-Postern-Ref: other\n`,
    }
    const { returnPaths, feedbackType } = without('Feedback', {
      recipient: ['a@b.example'],
      feedback_report: report,
    })
    assert.deepEqual(returnPaths, [mail.sender, 'a@b.example', `${local}@`])
    assert.equal(feedbackType, 'abuse')
    const bare = without('Feedback', { feedback_report: null })
    assert.deepEqual([bare.returnPaths, bare.feedbackType], [['fbl@mta.example'], null])
  })

  test('about the delivery of another log record is marked', () => {
    assert.equal(read('Delivery', { reception_protocol: 'LogRecord' })?.isAboutLogRecord, true)
    assert.equal(read('Delivery', { reception_protocol: null })?.isAboutLogRecord, false)
  })

  test('has the enhanced status code of the reply, or else the one in its text', () => {
    const statusOf = (response: object) => read('Bounce', { response })?.status
    const enhanced = (...[first, subject, detail]: unknown[]) => ({ class: first, subject, detail })
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(5, 7, 26), content: 'x' }), '5.7.26')
    assert.equal(statusOf({ code: 550, enhanced_code: null, content: '#5.1.1 unknown' }), '5.1.1')
    assert.equal(statusOf({ code: 550, content: '5.1.1 unknown' }), '5.1.1')
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(5, 0, 0), content: '5.1.1 unknown' }), '5.1.1')
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(5, 0, 0), content: 'unknown' }), '5.0.0')
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(3, 0, 0), content: 'x' }), null)
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(5, 1, 1.5), content: 'x' }), null)
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced('5', 1, 1), content: 'x' }), null)
    assert.equal(statusOf({ code: 550, enhanced_code: enhanced(5, 1, -1), content: 'x' }), null)
  })

  test('treats missing fields and fields with the wrong type as absent', () => {
    assert.deepEqual(
      { ...readKumoLogRecord({ type: 'Bounce', id: '1' }), identity: null },
      {
        ...{ type: 'Bounce', isAboutLogRecord: false, returnPaths: [], feedbackType: null, identity: null },
        ...{ code: null, status: null, diagnostic: null },
      },
    )
    const odd = {
      ...{ sender: ['a@b.example'], response: { code: '550', content: {} }, feedback_report: 'abuse' },
      ...{ timestamp: {}, recipient: null, num_attempts: [] },
    }
    assert.deepEqual(without('Bounce', odd), {
      ...{ ...usual, type: 'Bounce', returnPaths: [], code: null, status: null, diagnostic: null },
    })
    assert.deepEqual(read('Bounce', { sender: '' })?.returnPaths, [], 'the null sender')
    assert.deepEqual(read('Bounce', { response: { code: 99, content: 'x' } })?.code, null)
    const inherited = JSON.parse('{"type":"Bounce","id":"1","__proto__":{"sender":"a@b.example"}}')
    assert.deepEqual(readKumoLogRecord(inherited)?.returnPaths, [])
  })

  test('tolerates unknown fields, types and names', () => {
    assert.deepEqual(without('Delivery', { new_field: [{}], constructor: 1 }), without('Delivery'))
    assert.equal(readKumoLogRecord({ type: 'constructor', id: 'x' })?.type, 'constructor')
  })

  test('has text without control characters and of limited length', () => {
    const content = `a\r\n\0b${'x'.repeat(100_000)}`
    const said = read('Delivery', { response: { code: 250, content } })?.diagnostic ?? ''
    assert.match(said, /^250 a bx+$/)
    assert.ok(said.length <= 1000)
  })

  test('is not recognized in other values', () => {
    for (const value of [
      undefined,
      null,
      1,
      'Delivery',
      true,
      [],
      {},
      [[]],
      { type: 'Delivery' },
      { id: '1' },
    ]) {
      assert.equal(readKumoLogRecord(value), undefined, JSON.stringify(value))
    }
    assert.equal(read('Delivery', { id: '' }), undefined)
    assert.equal(read('Delivery', { type: 5 }), undefined)
  })
})

describe('the identity of a log record', () => {
  const record = kumoRecord(mail, 'OOB')
  const identityOf = (changes: object = {}) => readKumoLogRecord({ ...record, ...changes })?.identity

  test('is the same for the same record, however it is published', () => {
    const reversed = Object.fromEntries(Object.entries(record).reverse())
    assert.equal(readKumoLogRecord(reversed)?.identity, identityOf())
    for (const changes of [
      { headers: { Subject: 'x' } },
      { meta: { tenant: 'x' } },
      { new_field: 1 },
      { size: 5 },
    ]) {
      assert.equal(identityOf(changes), identityOf(), JSON.stringify(changes))
    }
  })

  test('is different for another record', () => {
    const response = record['response'] as object
    const others = [
      ...[{ type: 'Bounce' }, { id: 'x' }, { timestamp: 1 }, { event_time: 'x' }, { num_attempts: 9 }],
      ...[{ recipient: 'other@example.net' }, { response: { ...response, content: '5.2.1 other' } }],
      { response: { ...response, code: 551 } },
    ]
    const identities = others.map(identityOf)
    assert.equal(new Set([...identities, identityOf()]).size, others.length + 1)
  })
})

test('a log record is parsed safely, however malformed', (t) => {
  const chance = new Chance(seed)
  const types = ['Reception', 'Delivery', 'Bounce', 'OOB', 'Feedback', 'Expiration'] as const
  const samples = types.map((type) => JSON.stringify(kumoRecord(mail, type)))
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    'null',
    '1e999',
    '"__proto__":',
    '\\ud800',
    '\0',
    '{}',
    '[]',
  ]
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 20_000)
  const timing = new ParserTiming()
  let valid = 0
  for (let round = 0; round < count; round++) {
    let text = chance.pick(samples)
    for (let cuts = chance.below(4); cuts >= 0; cuts--) {
      const at = chance.below(text.length)
      text = text.slice(0, at) + chance.pick(pieces) + text.slice(at + chance.below(12))
    }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      continue
    }
    valid++
    assert.doesNotThrow(() => timing.of(text, () => readKumoLogRecord(value)), `seed ${chance.seed}`)
  }
  assert.ok(valid > 0)
  const nested = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const deep = { ...kumoRecord(mail, 'Bounce'), timestamp: nested, recipient: nested, response: nested }
  assert.equal(timing.of('deeply nested', () => readKumoLogRecord(deep))?.type, 'Bounce')
  t.diagnostic(`${count} inputs, ${valid} of them JSON, ${timing}, seed ${chance.seed}`)
})
