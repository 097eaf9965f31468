import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { type SesEventType, sesEvent } from '../testing/peers/ses-events.ts'
import { readSesEvent } from './ses-event.ts'

const tag = `bounce-${'a2'.repeat(24)}`
const mail = {
  ...{ sesId: '0102-3', to: 'anna@example.net', from: 'shop@example.com', configurationSet: 'events' },
  tags: { postern_mail: [tag] },
}
const read = (type: SesEventType, changes: object = {}) => readSesEvent(sesEvent(mail, type, changes))
const nothing = { bounceType: null, subType: null, feedbackType: null, status: null, diagnostic: null }

describe('an SES event', () => {
  test('is parsed as documented', () => {
    assert.deepEqual(read('Send'), { type: 'Send', mailTag: tag, ...nothing })
    assert.deepEqual(read('Delivery'), {
      ...{ type: 'Delivery', mailTag: tag, ...nothing },
      diagnostic: '250 2.6.0 Message received',
    })
    assert.deepEqual(read('Bounce'), {
      ...{ type: 'Bounce', mailTag: tag, ...nothing, bounceType: 'Permanent', subType: 'General' },
      ...{ status: '5.1.1', diagnostic: 'smtp; 550 5.1.1 user unknown' },
    })
    assert.deepEqual(read('Complaint', { complaintSubType: 'OnAccountSuppressionList' }), {
      ...{ type: 'Complaint', mailTag: tag, ...nothing },
      ...{ subType: 'OnAccountSuppressionList', feedbackType: 'abuse' },
    })
    assert.deepEqual(read('DeliveryDelay'), {
      ...{ type: 'DeliveryDelay', mailTag: tag, ...nothing },
      ...{ status: '4.4.1', diagnostic: 'smtp; 421 4.4.1 Unable to connect' },
    })
    assert.equal(read('Reject')?.diagnostic, 'Bad content')
    assert.equal(read('Rendering Failure')?.diagnostic, 'Attribute is missing')
  })

  test('treats missing fields and fields with the wrong type as absent', () => {
    assert.deepEqual(readSesEvent('{"eventType":"Bounce"}'), { type: 'Bounce', mailTag: null, ...nothing })
    const odd = read('Bounce', { bounceType: 7, bouncedRecipients: [{ status: '9.x', diagnosticCode: [] }] })
    assert.deepEqual(odd, { type: 'Bounce', mailTag: tag, ...nothing, subType: 'General' })
    assert.equal(read('Bounce', { bouncedRecipients: 'none' })?.status, null)
    assert.equal(
      readSesEvent(JSON.stringify({ eventType: 'Send', mail: { tags: { postern_mail: tag } } }))?.mailTag,
      null,
    )
    assert.equal(readSesEvent('{"eventType":"constructor","mail":{"tags":{}}}')?.diagnostic, null)
  })

  test('has text without control characters and of limited length', () => {
    const said = read('Delivery', { smtpResponse: `a\r\n\0b${'x'.repeat(100_000)}` })?.diagnostic ?? ''
    assert.match(said, /^a bx+$/)
    assert.ok(said.length <= 1000)
  })

  test('is not recognized in other input', () => {
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '1',
      '"Send"',
      '{}',
      '{"eventType":5}',
      '{"notificationType":"Bounce"}',
    ]) {
      assert.equal(readSesEvent(text), undefined, text)
    }
  })

  test('is parsed safely, however malformed', (t) => {
    const chance = new Chance(seed)
    const samples = (['Send', 'Delivery', 'Bounce', 'Complaint', 'DeliveryDelay', 'Reject'] as const).map(
      (type) => sesEvent(mail, type),
    )
    const pieces = ['{', '}', '[', ']', '"', ',', ':', 'null', '1e999', '"__proto__":', '\\ud800', '\0']
    const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 20_000)
    const quickness = new ParserTiming()
    for (let round = 0; round < count; round++) {
      let text = chance.pick(samples)
      for (let cuts = chance.below(4); cuts >= 0; cuts--) {
        const at = chance.below(text.length)
        text = text.slice(0, at) + chance.pick(pieces) + text.slice(at + chance.below(12))
      }
      assert.doesNotThrow(() => quickness.of(text, () => readSesEvent(text)), `seed ${chance.seed}`)
    }
    const deep = `{"eventType":"Send","mail":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    assert.equal(quickness.of(deep, () => readSesEvent(deep))?.type, 'Send')
    t.diagnostic(`${count} events, ${quickness}, seed ${chance.seed}`)
  })
})
