import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readJwt } from '../core/control/access/strict-jwt.ts'
import { isWellFormed, newSecret } from '../core/control/api-keys/secret.ts'
import { classifyDelivery, classifyKumoRecord, classifySesEvent } from '../core/mail/feedback/classify.ts'
import { makeLink, readLink } from '../core/mail/inbound/link.ts'
import { certificatePathOf, readSnsMessage, regionOfTopic } from '../providers/sns.ts'
import { mutated, slowMessages } from '../testing/fixtures/hostile-mail.ts'
import * as reports from '../testing/fixtures/mta-reports.ts'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { type KumoRecordType, kumoRecord } from '../testing/peers/kumo-records.ts'
import { type SesEventType, sesEvent } from '../testing/peers/ses-events.ts'
import { readAddress, readInternationalAddress } from './address.ts'
import { enhancedStatusOf, replyCodeOf, replyText } from './enhanced-status.ts'
import { splitFields, submittedBounds, unfolded } from './header.ts'
import { readIncomingReport } from './incoming-report.ts'
import { readKumoLogRecord } from './kumo-log-record.ts'
import { lineFault } from './line-limits.ts'
import { readMailbox } from './mailbox.ts'
import { parseMail } from './parse-mail.ts'
import { referencesIn } from './references.ts'
import { readSesEvent } from './ses-event.ts'
import { makeSrs, readSrs } from './srs.ts'
import { readSubmitted } from './submitted.ts'
import { displayFields, traceFault } from './trace.ts'
import { makeVerp, readVerp } from './verp.ts'

/**
 * Fuzzes every parser of untrusted input with mutated samples: none may crash. The tests of each parser check
 * its results. `npm run prove:parsers` uses a million inputs and fails if one takes more than 50 ms of CPU
 * time.
 */
interface Parser {
  samples: readonly Buffer[]
  /** Inputs crafted to take a long time, of any size that can reach the parser. */
  crafted: readonly Buffer[]
  /** Returns whether the input was accepted, to ensure that accepted inputs are also tested. */
  read(input: Buffer): boolean | Promise<boolean>
}

const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 20_000)

const buffers = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text))
const repeated = (pieces: readonly string[], times: number): Buffer[] =>
  buffers(pieces.map((piece) => piece.repeat(times)))

const folder = new URL('../testing/fixtures/mail-reports/', import.meta.url)
const mails = [
  ...readdirSync(folder).map((name) =>
    Buffer.from(readFileSync(new URL(name, folder), 'latin1').replaceAll('\n', '\r\n'), 'latin1'),
  ),
  ...Object.values(reports).filter((report) => Buffer.isBuffer(report)),
]
const keys = [randomBytes(32), randomBytes(32)] as const
const token = makeVerp(keys, {
  ...{ shard: 7, messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b' },
  ...{ recipientNo: 3, attempt: 2 },
})
const now = new Date('2026-11-15T12:00:00Z')
const link = makeLink(keys, { shard: 7, bodyId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b', attachment: 1 }, now)
const rewritten = ['ada@example.com', `${makeSrs(keys, 'a@b.example', now)}@first.example`].map(
  (sender) => makeSrs(keys, sender, now) ?? '',
)
const addresses = [
  'ada@example.com',
  'ada.b+c@sub.example.co.uk',
  'jörg@bücher.example',
  '"a b"@x.example',
  'a@[::1]',
]
const mailboxes = [
  ...addresses,
  'Ada <ada@example.com>',
  '"Ada, L." <ada@example.com>',
  '=?utf-8?q?=C3=A4?= <a@b.example>',
]
const eventTypes: SesEventType[] = [
  'Send',
  'Delivery',
  'Bounce',
  'Complaint',
  'DeliveryDelay',
  'Reject',
  'Open',
]
const sesEvents = eventTypes.map((type) =>
  sesEvent(
    {
      ...{ sesId: '0100', to: 'bob@example.org', from: 'ada@example.com' },
      ...{ tags: { postern_mail: [token] }, configurationSet: 'postern' },
    },
    type,
  ),
)
const recordTypes: KumoRecordType[] = [
  'Delivery',
  'Bounce',
  'TransientFailure',
  'OOB',
  'Feedback',
  'Reception',
]
const kumoRecords = recordTypes.map((type) =>
  JSON.stringify(kumoRecord({ sender: `${token}@bounces.example.com`, recipient: 'bob@example.org' }, type)),
)
const snsMessages = ['Notification', 'SubscriptionConfirmation'].map((Type, n) =>
  JSON.stringify({
    Type,
    ...{ MessageId: '1', TopicArn: 'arn:aws:sns:eu-west-1:111122223333:postern', Token: 'token' },
    ...{ Message: sesEvents[n], Timestamp: '2026-11-14T09:30:00.000Z', SubscribeURL: 'https://x.example/' },
    SigningCertURL: 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem',
    ...{ SignatureVersion: '2', Signature: 'QUJD' },
  }),
)
const jwt = [
  '{"alg":"EdDSA","kid":"1","typ":"JWT"}',
  '{"iss":"https://a.example","sub":"1","exp":1}',
  'signature',
]
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.')
// The maximum sizes that Fastify accepts: bodies of one megabyte, headers of 16 KiB.
const largeJson = repeated(['[', '{"a":', '"', '\\u0000', '[{},', '{"Type":"Notification",'], 100_000)
const longLines = repeated(
  ['a', '@', '.', 'a.', '<', '"', '\\', '(', 'ü', '=?', '.a', ' ', ';', '\t'],
  16_000,
)

const parsers: Record<string, Parser> = {
  dsn: {
    samples: mails,
    crafted: slowMessages,
    async read(raw) {
      const { dsn } = await readIncomingReport(raw)
      return dsn !== undefined && classifyDelivery(dsn.recipients, 'bob@example.org') !== undefined
    },
  },
  arf: {
    samples: mails.filter((mail) => mail.includes('feedback-report')),
    crafted: slowMessages,
    read: async (raw) => (await readIncomingReport(raw)).complaint !== undefined,
  },
  submitted: {
    samples: mails,
    crafted: slowMessages,
    read: (raw) =>
      !('fault' in readSubmitted(raw, { allowsUtf8: true, host: 'mail.example.com', at: new Date(0) })),
  },
  header: {
    samples: mails,
    crafted: slowMessages,
    read(raw) {
      const parts = lineFault(raw) === undefined ? splitFields(raw, submittedBounds) : { fault: 'lines' }
      if ('fault' in parts) return false
      for (const field of parts.fields) unfolded(field)
      return true
    },
  },
  'trace of a message': {
    samples: mails,
    crafted: slowMessages,
    read(raw) {
      displayFields(raw)
      return traceFault(raw, ['ada@example.com']) === undefined
    },
  },
  'pasted text': {
    samples: mails,
    crafted: slowMessages,
    read: (raw) => referencesIn(raw.toString().slice(0, 65_536)).addresses.length > 0,
  },
  'inbound mail': {
    samples: mails,
    // Runs in a thread with a timeout (core/mail/inbound/analysis-threads.ts).
    crafted: [],
    read: (raw) =>
      parseMail(raw).then(
        () => true,
        (error: Error) => {
          // It rejects input that exceeds its limits for nesting or header size.
          if (!error.message.startsWith('Maximum')) throw error
          return false
        },
      ),
  },
  'event of SES': {
    samples: buffers(sesEvents),
    crafted: largeJson,
    read(text) {
      const event = readSesEvent(text.toString())
      if (event) classifySesEvent(event)
      return event !== undefined
    },
  },
  'KumoMTA log record': {
    samples: buffers(kumoRecords),
    crafted: [
      ...largeJson,
      ...['content', 'original_message'].flatMap((name) =>
        repeated(['a', '\\n', 'a:\\n', ' \\n', '5.1.1 ', '\\r', ': <'], 80_000).map((text) => {
          const member = `{"${name}":"${text}"}`
          return Buffer.from(`{"type":"Feedback","id":"1","response":${member},"feedback_report":${member}}`)
        }),
      ),
    ],
    read(text) {
      let value: unknown
      try {
        value = JSON.parse(text.toString())
      } catch {
        return false
      }
      const record = readKumoLogRecord(value)
      if (record) classifyKumoRecord(record)
      return record !== undefined
    },
  },
  'message of SNS': {
    samples: buffers(snsMessages),
    crafted: largeJson,
    read(body) {
      const message = readSnsMessage(body)
      if (message && regionOfTopic(message.topicArn) !== undefined) certificatePathOf(message)
      return message !== undefined
    },
  },
  address: {
    samples: buffers(addresses),
    crafted: longLines,
    read: (text) =>
      [text.toString('latin1'), text.toString()].some(
        (one) => !('fault' in readAddress(one)) || !('fault' in readInternationalAddress(one)),
      ),
  },
  mailbox: {
    samples: buffers(mailboxes),
    crafted: longLines,
    read: (text) => !('fault' in readMailbox(text.toString())),
  },
  'return path': {
    samples: buffers([token, token.toUpperCase()]),
    crafted: longLines,
    read: (text) => readVerp(keys, text.toString()) !== undefined,
  },
  'sender of forwarded mail': {
    samples: buffers(rewritten),
    crafted: longLines,
    read(text) {
      makeSrs(keys, text.toString('latin1'), now)
      return readSrs(keys, text.toString('latin1'), now) !== undefined
    },
  },
  'link to a part of a message': {
    samples: buffers([link]),
    crafted: longLines,
    read: (text) => readLink(keys, text.toString('latin1'), now) !== undefined,
  },
  'reply of an MTA': {
    samples: buffers([
      '550 5.1.1 <bob@example.org>: user unknown',
      '250-2.6.0 a\r\n250 2.6.0 b',
      '421 4.4.2 Bye',
    ]),
    crafted: longLines,
    read(text) {
      const said = text.toString()
      replyText(said)
      return enhancedStatusOf(said) !== null || replyCodeOf(said) !== null
    },
  },
  'access token': {
    samples: buffers([jwt]),
    crafted: longLines,
    read: (text) => readJwt(text.toString('latin1')) !== undefined,
  },
  'API key': {
    samples: buffers([newSecret('live'), newSecret('test')]),
    crafted: longLines,
    read: (text) => isWellFormed(text.toString('latin1')),
  },
}

for (const [name, { samples, crafted, read }] of Object.entries(parsers)) {
  test(`${name}: any input is accepted or rejected quickly`, async (t) => {
    const chance = new Chance(seed)
    const share = Math.ceil(count / Object.keys(parsers).length)
    const quickness = new ParserTiming()
    let good = 0
    const look = async (input: Buffer) => {
      try {
        if (await read(input)) good++
      } catch (error) {
        assert.fail(`seed ${seed}: ${JSON.stringify(input.toString('latin1'))}: ${(error as Error).stack}`)
      }
    }
    const inputs = function* () {
      yield* crafted
      for (let n = 0; n < share; n++) {
        const sample = chance.pick(samples)
        yield chance.below(100) === 0 ? sample : mutated(sample, chance)
      }
    }
    for (const input of inputs()) {
      await quickness.ofAsync(input.toString('latin1', 0, 300), () => look(input))
    }
    t.diagnostic(`${share + crafted.length} inputs, ${good} accepted, ${quickness}, seed ${seed}`)
    assert.ok(good > 0, 'no input was accepted')
  })
}
