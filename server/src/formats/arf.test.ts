import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mutated, slowMessages } from '../testing/fixtures/hostile-mail.ts'
import * as reports from '../testing/fixtures/mta-reports.ts'
import { ParserTiming } from '../testing/harness/parser-timing.ts'
import { Chance, seed } from '../testing/harness/random.ts'
import { readIncomingReport } from './incoming-report.ts'

const readFeedbackReport = async (raw: Buffer) => (await readIncomingReport(raw)).complaint

const token = 'bounce-aebaaejcgncfkztxrcm2vo6m3xxp6aye2d5holtxls2bwl56'
const changed = (from: string | RegExp, to: string) =>
  readFeedbackReport(Buffer.from(reports.abuseReport.toString().replace(from, to)))

describe('a complaint', () => {
  test('identifies the reported message', async () => {
    assert.deepEqual(await readFeedbackReport(reports.abuseReport), {
      feedbackType: 'abuse',
      originalMailFrom: `${token}@bounces.customer.example`,
      originalRcptTo: ['bob@example.org', 'eve@example.org'],
      reportedHeaders: {
        returnPath: `${token}@bounces.customer.example`,
        messageId: '<00112233-4455-6677-8899-aabbccddeeff@customer.example>',
        ref: token,
        to: '<undisclosed@example.org>',
      },
    })
  })

  test('is parsed with minimal content, and with only the message header', async () => {
    const bare = await changed(/Original-.*Source-IP/s, 'Source-IP')
    assert.deepEqual([bare?.originalMailFrom, bare?.originalRcptTo], [null, []])
    assert.equal(bare?.reportedHeaders.ref, token)
    const headers = await changed('Content-Type: message/rfc822', 'Content-Type: text/rfc822-headers')
    assert.equal(headers?.reportedHeaders.ref, token)
    assert.equal((await changed('Feedback-Type: Abuse', 'Feedback-Type: not-spam'))?.feedbackType, 'not-spam')
  })

  test('is not recognized in other mail', async () => {
    for (const raw of [
      reports.postfixBounce,
      reports.ordinaryMail,
      Buffer.from('Feedback-Type: abuse\r\n\r\n'),
    ]) {
      assert.equal(await readFeedbackReport(raw), undefined)
    }
    assert.equal(await changed('Feedback-Type: Abuse', 'X: y'), undefined)
    assert.equal(await changed('multipart/report', 'multipart/mixed'), undefined)
  })
})

test('any message is parsed or ignored quickly', async (t) => {
  const chance = new Chance(seed)
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 1000)
  let found = 0
  const inputs = function* () {
    for (const raw of slowMessages) {
      yield Buffer.from(raw.toString('latin1').replaceAll('delivery-status', 'feedback-report'), 'latin1')
    }
    for (let n = 0; n < count; n++) yield mutated(reports.abuseReport, chance)
  }
  const look = async (raw: Buffer) => {
    const report = await readFeedbackReport(raw)
    if (!report) return
    found++
    assert.match(report.feedbackType, /^[\w-]{1,40}$/)
    assert.ok(report.originalRcptTo.length <= 100)
    for (const text of [
      report.originalMailFrom,
      ...report.originalRcptTo,
      ...Object.values(report.reportedHeaders),
    ]) {
      assert.doesNotMatch(text ?? '', /\p{Cc}/u, `seed ${chance.seed}`)
      assert.ok((text ?? '').length <= 1000)
    }
  }
  const quickness = new ParserTiming()
  for (const raw of inputs()) await quickness.ofAsync(raw.toString('latin1', 0, 300), () => look(raw))
  assert.ok(found > count / 4, `only ${found} of ${count} were complaints`)
  t.diagnostic(`${count} messages, ${found} complaints, ${quickness}, seed ${chance.seed}`)
})
