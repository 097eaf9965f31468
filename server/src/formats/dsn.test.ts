import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mutated, slowMessages } from '../testing/fixtures/hostile-mail.ts'
import * as reports from '../testing/fixtures/mta-reports.ts'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { readIncomingReport } from './incoming-report.ts'

const readDsn = async (raw: Buffer) => (await readIncomingReport(raw)).dsn

const token = 'bounce-aebaaejcgncfkztxrcm2vo6m3xxp6aye2d5holtxls2bwl56'

async function recipientOf(raw: Buffer) {
  const dsn = await readDsn(raw)
  assert.equal(dsn?.recipients.length, 1)
  return dsn?.recipients[0]
}

describe('a delivery status notification', () => {
  test('is fully parsed if it is from Postfix', async () => {
    assert.deepEqual(await readDsn(reports.postfixBounce), {
      envid: '00112233-4455-6677-8899-aabbccddeeff.3.4',
      reportingMta: 'mx1.example.net',
      recipients: [
        {
          action: 'failed',
          status: '5.1.1',
          diagnostic: '550 5.1.1 <bob@example.org>: Recipient address rejected: User unknown',
          remoteMta: 'mx.example.org',
          finalRecipient: 'bob@example.org',
          originalRecipient: 'bob@example.org',
        },
      ],
      original: { messageId: '<00112233-4455-6677-8899-aabbccddeeff@customer.example>', ref: token },
    })
  })

  test('reports a delay or a success', async () => {
    const delay = await recipientOf(reports.postfixDelay)
    assert.equal(delay?.action, 'delayed')
    assert.equal(delay?.status, '4.4.1')
    assert.match(delay?.diagnostic ?? '', /^connect to .* Connection timed out$/)
    const success = await recipientOf(reports.postfixSuccess)
    assert.equal(success?.action, 'relayed')
    assert.equal(success?.status, '2.0.0')
    assert.equal((await readDsn(reports.postfixSuccess))?.envid, 'e2')
  })

  test('is parsed if it is from Exim, Exchange or Gmail', async () => {
    const exim = await recipientOf(reports.eximBounce)
    assert.deepEqual(
      [exim?.action, exim?.status, exim?.finalRecipient],
      ['failed', '5.7.1', 'bob@example.org'],
    )
    assert.equal((await readDsn(reports.eximBounce))?.original.messageId, '<b@customer.example>')
    const exchange = await recipientOf(reports.exchangeBounce)
    assert.deepEqual([exchange?.action, exchange?.status], ['failed', '5.1.10'])
    assert.match(exchange?.diagnostic ?? '', /^550 5\.1\.10 RESOLVER/)
    const gmail = await recipientOf(reports.gmailBounce)
    assert.deepEqual(
      [gmail?.action, gmail?.status, gmail?.finalRecipient],
      ['failed', '5.1.1', 'bob@gmail.example'],
    )
    assert.match(gmail?.diagnostic ?? '', /^550-5\.1\.1 The email account .* gsmtp$/)
  })

  test('reports several recipients separately', async () => {
    const group =
      '\r\n\r\nFinal-Recipient: rfc822; eve@example.org\r\nAction: DELIVERED (really)\r\nStatus: 2.1.5 (fine)\r\n'
    const raw = reports.postfixBounce.toString().replace(/(\r\n {4}User unknown)/, `$1${group}`)
    const dsn = await readDsn(Buffer.from(raw))
    assert.deepEqual(
      dsn?.recipients.map(({ finalRecipient, action, status }) => [finalRecipient, action, status]),
      [
        ['bob@example.org', 'failed', '5.1.1'],
        ['eve@example.org', 'delivered', '2.1.5'],
      ],
    )
  })

  test('gets a status even if the report has none or only a generic one', async () => {
    const changed = (from: RegExp, to: string) =>
      recipientOf(Buffer.from(reports.postfixBounce.toString().replace(from, to)))
    assert.equal((await changed(/Status: 5\.1\.1\r\n/, ''))?.status, '5.1.1')
    assert.equal((await changed(/Status: 5\.1\.1/, 'Status: 5.0.0'))?.status, '5.1.1')
    assert.equal((await changed(/Status: 5\.1\.1/, 'Status: 4.0.0'))?.status, '4.0.0')
    assert.equal((await changed(/Status: 5\.1\.1/, 'Status: 5.2.2'))?.status, '5.2.2')
    assert.equal((await changed(/Status: .*User unknown/s, 'X: y'))?.status, '5.0.0')
    assert.equal((await changed(/Action: failed/, 'Action: Failure'))?.action, 'failed')
  })

  test('can contain non-ASCII addresses in the RFC 6533 form', async () => {
    const raw = reports.postfixBounce
      .toString()
      .replace('Final-Recipient: rfc822; bob@example.org', 'Final-Recipient: utf-8; jörg@bücher.example')
      .replace(
        'Original-Recipient: rfc822;bob@example.org',
        'Original-Recipient: utf-8;j\\x{F6}rg\\x{2B}a@xn--bcher-kva.example',
      )
      .replace('message/delivery-status', 'message/global-delivery-status')
      .replace('text/rfc822-headers', 'message/global-headers')
    const dsn = await readDsn(Buffer.from(raw))
    assert.equal(dsn?.recipients[0]?.finalRecipient, 'jörg@bücher.example')
    assert.equal(dsn?.recipients[0]?.originalRecipient, 'jörg+a@xn--bcher-kva.example')
    assert.equal(dsn?.original.ref, token)
  })

  test('is parsed even if it returns all of a large message', async () => {
    const raw = Buffer.concat([reports.postfixBounce.subarray(0, -45), Buffer.alloc(30e6, 'Hello World\r\n')])
    assert.equal((await recipientOf(raw))?.status, '5.1.1')
  })

  test('is not recognized in other mail, even as an attachment', async () => {
    for (const raw of [
      reports.ordinaryMail,
      reports.abuseReport,
      Buffer.from(''),
      Buffer.from(
        'Subject: Undelivered Mail Returned to Sender\r\n\r\nbob@example.org: 550 5.1.1 User unknown\r\n',
      ),
      Buffer.from(reports.postfixBounce.toString().replace('Action: failed', 'Action: pondered')),
      Buffer.from(reports.postfixBounce.toString().replace(/(Final|Original)-Recipient: .*/g, 'X: y')),
    ]) {
      assert.equal(await readDsn(raw), undefined, raw.toString().slice(0, 60))
    }
  })
})

test('any message is parsed or ignored quickly, and all values are bounded', async (t) => {
  const chance = new Chance(seed)
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 1000)
  const samples = [
    reports.postfixBounce,
    reports.postfixDelay,
    reports.eximBounce,
    reports.exchangeBounce,
    reports.gmailBounce,
  ]
  let found = 0
  const inputs = function* () {
    yield* slowMessages
    for (let n = 0; n < count; n++) yield mutated(chance.pick(samples), chance)
  }
  const look = async (raw: Buffer) => {
    const dsn = await readDsn(raw)
    if (!dsn) return
    found++
    for (const {
      action,
      status,
      finalRecipient,
      originalRecipient,
      diagnostic,
      remoteMta,
    } of dsn.recipients) {
      assert.match(action, /^(?:failed|delayed|delivered|relayed|expanded)$/)
      assert.match(status, /^[245]\.\d{1,3}\.\d{1,3}$/)
      for (const text of [finalRecipient, originalRecipient, diagnostic, remoteMta, dsn.envid]) {
        assert.doesNotMatch(text ?? '', /\p{Cc}/u, `seed ${chance.seed}`)
        assert.ok((text ?? '').length <= 1000)
      }
    }
  }
  const quickness = new ParserTiming()
  for (const raw of inputs()) await quickness.ofAsync(raw.toString('latin1', 0, 300), () => look(raw))
  assert.ok(found > count / 4, `only ${found} of ${count} were notifications`)
  t.diagnostic(`${count} messages, ${found} notifications, ${quickness}, seed ${chance.seed}`)
})
