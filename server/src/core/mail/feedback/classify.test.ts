import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DsnRecipient } from '../../../formats/dsn.ts'
import { readKumoLogRecord } from '../../../formats/kumo-log-record.ts'
import { type KumoRecordType, kumoRecord } from '../../../testing/peers/kumo-records.ts'
import { classifyComplaint, classifyDelivery, classifyKumoRecord } from './classify.ts'

const part = (action: DsnRecipient['action'], status: string, changes: Partial<DsnRecipient> = {}) => ({
  ...{ action, status, diagnostic: 'as it was said', remoteMta: null },
  ...{ originalRecipient: null, finalRecipient: 'one@example.net' },
  ...changes,
})

describe('a delivery report', () => {
  const examples: [action: DsnRecipient['action'], status: string, kind: string][] = [
    ['delivered', '2.0.0', 'delivered'],
    ['relayed', '2.0.0', 'delivered'],
    ['expanded', '2.0.0', 'delivered'],
    ['delayed', '4.4.1', 'deferred'],
    ['failed', '5.1.1', 'bounced'],
    ['failed', '5.0.0', 'bounced'],
    ['failed', '4.4.7', 'failed'],
    ['failed', '2.0.0', 'bounced'],
  ]
  for (const [action, status, kind] of examples) {
    test(`with action ${action} and status ${status} is classified as ${kind}`, () => {
      const diagnostic = 'as it was said'
      assert.deepEqual(classifyDelivery([part(action, status)], ''), { kind, status, diagnostic })
    })
  }

  test("about several recipients applies to the message's original or final recipient", () => {
    const parts = [
      part('delivered', '2.0.0', { finalRecipient: 'two@example.net' }),
      part('failed', '5.1.1', { finalRecipient: 'x@y.example', originalRecipient: 'One@Example.net' }),
    ]
    assert.equal(classifyDelivery(parts, 'one@example.net')?.kind, 'bounced')
    assert.equal(classifyDelivery(parts, 'two@example.net')?.kind, 'delivered')
  })

  test('about the members of a list is classified as delivered if one member received the message', () => {
    const readers = ['failed', 'delayed', 'delivered', 'failed'] as const
    const parts = readers.map((action) => part(action, '5.1.1', { originalRecipient: 'list@example.net' }))
    assert.equal(classifyDelivery(parts, 'list@example.net')?.kind, 'delivered')
    assert.equal(classifyDelivery(parts.slice(0, 2), 'list@example.net')?.kind, 'deferred')
    assert.equal(classifyDelivery(parts.slice(0, 1), 'list@example.net')?.kind, 'bounced')
  })
})

describe('a complaint', () => {
  test('is recognized by a feedback type for unwanted mail', () => {
    for (const type of ['abuse', 'fraud', 'virus', 'other', 'opt-out']) {
      assert.equal(classifyComplaint(type)?.kind, 'complained', type)
    }
    for (const type of ['not-spam', 'auth-failure', 'dmarc', '']) {
      assert.equal(classifyComplaint(type), undefined, type)
    }
  })
})

describe('a KumoMTA log record', () => {
  const classify = (type: KumoRecordType, changes: object = {}) => {
    const mail = { sender: 'bounce@example.com', recipient: 'one@example.net' }
    const record = readKumoLogRecord(kumoRecord(mail, type, changes))
    return record && classifyKumoRecord(record)
  }
  const examples: [type: KumoRecordType, kind: string | undefined][] = [
    ['Delivery', 'delivered'],
    ['TransientFailure', 'deferred'],
    ['Bounce', 'bounced'],
    ['OOB', 'bounced'],
    ['Expiration', 'failed'],
    ['AdminBounce', 'failed'],
    ['Feedback', 'complained'],
    ['Reception', undefined],
    ['Rejection', undefined],
    ['Delayed', undefined],
    ['AdminRebind', undefined],
    ['XferOut', undefined],
  ]
  for (const [type, kind] of examples) {
    test(`of the type ${type} is ${kind === undefined ? 'ignored' : `classified as ${kind}`}`, () => {
      assert.equal(classify(type)?.kind, kind)
    })
  }

  test('about a temporary failure that KumoMTA gave up on is classified as failed', () => {
    const reply = (code: number, first: number | null) => ({
      response: { code, enhanced_code: first && { class: first, subject: 4, detail: 1 }, content: 'x' },
    })
    const kinds = [reply(451, 4), reply(451, null), reply(550, 4), reply(550, null), reply(550, 5), {}]
      .map((changes) => [classify('Bounce', changes)?.kind, classify('OOB', changes)?.kind])
      .map(([bounce, oob]) => (bounce === oob ? bounce : 'different'))
    assert.deepEqual(kinds, ['failed', 'failed', 'failed', 'bounced', 'bounced', 'bounced'])
  })

  test('about the delivery of another log record is ignored', () => {
    for (const type of ['Delivery', 'Bounce', 'TransientFailure', 'Expiration'] as const) {
      assert.equal(classify(type, { reception_protocol: 'LogRecord' }), undefined, type)
    }
  })
})
