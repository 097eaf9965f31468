import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import PostalMime from 'postal-mime'
import { complainAbout } from './complaint.ts'
import { Sink } from './sink.ts'

describe('a complaint', () => {
  it('is a feedback report about the mail that was received', async () => {
    const listener = await Sink.open()
    const raw =
      'From: orders@shop.example.org\r\nMessage-ID: <1@shop.example.org>\r\n\r\nIt is on its way.\r\n'
    await complainAbout(
      {
        from: 'p-abc@bounces.shop.example.org',
        to: ['anna@example.net'],
        raw: Buffer.from(raw),
        ip: '127.0.0.1',
        helo: 'mta.test',
      },
      { port: listener.port, to: 'fbl@return.example.net' },
    )
    const report = await listener.next(({ to }) => to[0] === 'fbl@return.example.net')
    const { headers, attachments } = await PostalMime.parse(report.raw, { attachmentEncoding: 'utf8' })
    const type = headers.find(({ key }) => key === 'content-type')?.value
    assert.match(type ?? '', /^multipart\/report; report-type=feedback-report;/)
    const [feedback, reported] = attachments
    assert.equal(feedback?.mimeType, 'message/feedback-report')
    assert.match(String(feedback?.content), /^Feedback-Type: abuse$/m)
    assert.match(String(feedback?.content), /^Original-Mail-From: <p-abc@bounces\.shop\.example\.org>$/m)
    assert.equal(reported?.mimeType, 'text/rfc822-headers')
    assert.match(String(reported?.content), /^Message-ID: <1@shop\.example\.org>$/m)
    assert.ok(!report.raw.includes('It is on its way.'))
  })
})
