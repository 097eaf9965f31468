import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Mail, openStage } from './stage.ts'

/**
 * mailauth authenticates the delivered messages as a receiver would, using only the DNS records that the shop
 * publishes: DKIM passes, SPF passes, and both are aligned with the From domain. Messages of many kinds are sent,
 * because a signature breaks if an MTA along the way rewrites the message.
 */
const stage = await openStage()

const kinds: Record<string, Partial<Mail>> = {
  'a plain text': {},
  'a text in other scripts': {
    from: 'Müller & Söhne <orders@shop.example.org>',
    subject: 'Ihre Bestellung ist unterwegs, 你好 🎉',
    text: 'Grüße aus Köln\n\n你好',
  },
  'a text with lines that an MTA might rewrite': {
    text: [
      '.',
      '..',
      'From the shop',
      ' ',
      'a line that ends with a space ',
      '',
      '-- ',
      'The shop',
      '',
      '',
    ].join('\n'),
  },
  'a very long line': { text: 'word '.repeat(2000) },
  'HTML and text': { html: `<p>It is <b>on its way</b>.</p>${'<p>more</p>'.repeat(500)}` },
  'an attachment': {
    attachments: [
      {
        filename: 'Rechnung Nº 1.pdf',
        content_type: 'application/pdf',
        content: Buffer.from('not really a document'.repeat(1000)).toString('base64'),
      },
    ],
  },
  'a very long subject': { subject: 'Your order, and what else we have for you '.repeat(20).trim() },
}

describe('a delivered message passes DKIM, SPF and DMARC:', () => {
  for (const [number, [kind, mail]] of Object.entries(kinds).entries()) {
    it(kind, async () => {
      const recipient = `anna${number}@example.net`
      await stage.send({ to: [recipient], ...mail })
      const delivery = await stage.sink.next(({ to }) => to[0] === recipient)
      const { dkim, spf, dmarc } = await stage.authentication(delivery)
      assert.deepEqual(dkim, [
        { result: 'pass', domain: 'shop.example.org', selector: stage.domain.identity.selector },
      ])
      assert.deepEqual(spf, { result: 'pass', domain: 'bounces.shop.example.org' })
      assert.equal(dmarc.result, 'pass')
      assert.deepEqual(dmarc.alignedBy, { dkim: 'shop.example.org', spf: 'bounces.shop.example.org' })
    })
  }
})
