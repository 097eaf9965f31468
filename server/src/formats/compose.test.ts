import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import PostalMime, { type Email } from 'postal-mime'
import { Chance, seed } from '../testing/harness/random.ts'
import { composeMime } from './compose.ts'
import type { Content } from './content.ts'

const composition = {
  messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b',
  domain: 'example.com',
  date: new Date('2026-11-14T09:30:00.250Z'),
}

const plain: Content = {
  from: { name: 'Ada Lovelace', address: 'ada@example.com' },
  to: [{ name: null, address: 'bob@example.org' }],
  cc: [],
  reply_to: [],
  subject: 'Hello',
  text: 'Hello, Bob.\n',
  html: null,
  headers: [],
  attachments: [],
}

const compose = (change: Partial<Content>) => composeMime({ ...plain, ...change }, composition)
/** Parsed by a different library than the one that composed it. */
const read = async (change: Partial<Content>): Promise<Email> => PostalMime.parse(await compose(change))

function assertWellFormed(mime: Buffer): void {
  const lines = mime.toString('latin1').split('\r\n')
  assert.equal(lines.pop(), '')
  for (const line of lines) {
    assert.ok(line.length <= 998, `a line of ${line.length} octets`)
    assert.doesNotMatch(line, /[\r\n\0]/)
  }
  const header = lines.slice(0, lines.indexOf(''))
  for (const line of header) assert.match(line, /^(?:[\x21-\x39\x3b-\x7e]+:.*|[ \t]+\S.*)$/)
}

describe('a composed message', () => {
  test('has the expected header fields, in any order', async () => {
    const mime = await compose({
      cc: [{ name: 'Eve, "the" Third', address: 'eve@example.net' }],
      reply_to: [{ name: null, address: 'desk@example.com' }],
      headers: [
        { name: 'X-Tag', value: 'a "b" c' },
        { name: 'List-Unsubscribe', value: '<https://example.com/u>' },
      ],
    })
    assertWellFormed(mime)
    assert.deepEqual(mime.toString().split('\r\n\r\n')[0]?.split('\r\n').sort(), [
      'Cc: "Eve, \\"the\\" Third" <eve@example.net>',
      'Content-Transfer-Encoding: quoted-printable',
      'Content-Type: text/plain; charset=utf-8',
      'Date: Sat, 14 Nov 2026 09:30:00 +0000',
      'From: Ada Lovelace <ada@example.com>',
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
      'List-Unsubscribe: <https://example.com/u>',
      'MIME-Version: 1.0',
      'Message-ID: <0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b@example.com>',
      'Reply-To: desk@example.com',
      'Subject: Hello',
      'To: bob@example.org',
      'X-Tag: a "b" c',
    ])
  })

  test('is byte-identical every time it is composed', async (t) => {
    const content = {
      html: '<p>Hello</p>',
      attachments: [
        { filename: 'a.bin', content_type: 'application/octet-stream', content: 'AAEC', content_id: null },
      ],
    }
    const first = await compose(content)
    t.mock.timers.enable({ apis: ['Date'], now: new Date('2031-03-01T04:05:06Z') })
    assert.deepEqual(await compose(content), first)
    const other = { ...composition, messageId: composition.messageId.replace('0b', '0c') }
    assert.notDeepEqual(await composeMime({ ...plain, ...content }, other), first)
  })

  test('has separate parts for text, HTML, inline images and attachments', async () => {
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    const mail = await read({
      text: 'Hällo',
      html: '<p>Hällo <img src="cid:logo@example.com"></p>',
      attachments: [
        {
          filename: 'Übersicht "2".pdf',
          content_type: 'application/pdf',
          content: 'JVBERi0=',
          content_id: null,
        },
        {
          filename: 'logo.png',
          content_type: 'image/png',
          content: png.toString('base64'),
          content_id: 'logo@example.com',
        },
        { filename: 'm.eml', content_type: 'message/rfc822', content: 'RnJvbTogeAoKLgo=', content_id: null },
      ],
    })
    assert.equal(mail.text?.trim(), 'Hällo')
    assert.equal(mail.html?.trim(), '<p>Hällo <img src="cid:logo@example.com"></p>')
    const parts = mail.attachments.map(({ filename, mimeType, disposition, contentId, content }) => ({
      ...{ filename, mimeType, disposition, contentId },
      content: Buffer.from(content as ArrayBuffer).toString('latin1'),
    }))
    assert.deepEqual(parts, [
      {
        filename: 'logo.png',
        mimeType: 'image/png',
        disposition: 'inline',
        contentId: '<logo@example.com>',
        content: png.toString('latin1'),
      },
      {
        filename: 'Übersicht "2".pdf',
        mimeType: 'application/pdf',
        disposition: 'attachment',
        contentId: undefined,
        content: '%PDF-',
      },
      {
        filename: 'm.eml',
        mimeType: 'application/octet-stream',
        disposition: 'attachment',
        contentId: undefined,
        content: 'From: x\n\n.\n',
      },
    ])
  })

  test('is 7-bit in every language, except for addresses', async () => {
    const names = [
      'Jörg Müller',
      'アダ・ラブレス',
      'Ада Лавлейс',
      'עדה',
      '\u{1F469}\u200d\u{1F4BB} \u{1F600}'.repeat(20),
    ]
    for (const name of names) {
      const content = {
        from: { ...plain.from, name },
        subject: `${name} ${name}`,
        text: name,
        html: `<p>${name}</p>`,
      }
      const mime = await compose({ ...content, headers: [{ name: 'X-Name', value: name }] })
      assertWellFormed(mime)
      assert.ok(mime.every((octet) => octet > 0 && octet < 128))
      const mail = await PostalMime.parse(mime)
      assert.equal(mail.from?.name, name)
      assert.equal(mail.subject, content.subject)
      assert.equal(mail.text?.trim(), name)
      assert.equal(mail.html?.trim(), content.html)
    }
    const mime = await compose({ to: [{ name: 'Jörg', address: 'jörg@xn--bcher-kva.example' }] })
    assert.match(mime.toString(), /^To: =\?UTF-8\?Q\?J=C3=B6rg\?= <jörg@bücher.example>\r$/m)
  })

  test('has no line that is too long, even for values without spaces', async () => {
    const long = 'x'.repeat(5000)
    const filename = `${'"'.repeat(100)}${'y'.repeat(100)}`
    const mime = await compose({
      from: { name: '\\'.repeat(320), address: `${'a'.repeat(64)}@example.com` },
      to: Array.from({ length: 50 }, (_, n) => ({ name: 'n'.repeat(320), address: `bob${n}@example.org` })),
      subject: long,
      text: long,
      html: long,
      headers: [{ name: `X-${'n'.repeat(98)}`, value: `${'v'.repeat(800)} ${'w'.repeat(800)}` }],
      attachments: [{ filename, content_type: 'text/plain', content: 'AAAA', content_id: 'c'.repeat(200) }],
    })
    assertWellFormed(mime)
    const mail = await PostalMime.parse(mime)
    assert.equal(mail.subject, long)
    assert.equal(mail.text?.trim(), long)
    assert.equal(mail.from?.name, '\\'.repeat(320))
    assert.equal(mail.to?.length, 50)
    assert.equal(mail.attachments[0]?.filename, filename)
  })

  test('preserves a subject that looks like other syntax', async () => {
    for (const subject of [
      '=?utf-8?Q?=0D=0ABcc:_x?=',
      `a${' '.repeat(200)}b`,
      'a "quoted" word',
      '<b>',
      'x: y',
      '\u{1F600}',
    ]) {
      const mime = await compose({ subject })
      assertWellFormed(mime)
      assert.equal((await PostalMime.parse(mime)).subject, subject)
    }
    assert.equal((await read({ subject: '' })).subject, undefined)
    assert.equal((await read({ subject: 'a\r\nBcc: x@example.com\0' })).subject, 'a Bcc: x@example.com')
  })

  test('is rejected if it has unchecked headers', async () => {
    for (const header of [
      { name: 'Bcc', value: 'x@example.com' },
      { name: 'X-A', value: 'a\r\nBcc: x@example.com' },
      { name: 'X-A\r\nBcc', value: 'x@example.com' },
    ]) {
      await assert.rejects(compose({ headers: [header] }), /not checked/)
    }
  })

  test('reads no file and fetches no URL, regardless of its attachments', async () => {
    const sly = {
      path: '/etc/passwd',
      href: 'http://127.0.0.1:1/',
      raw: 'Bcc: x@example.com\r\n\r\n',
      encoding: 'hex',
    }
    const attachment = {
      filename: 'a',
      content_type: 'text/plain',
      content: 'aGVsbG8=',
      content_id: null,
      ...sly,
    }
    const mime = (
      await compose({ attachments: [attachment], html: '<img src="file:///etc/passwd">' })
    ).toString()
    assert.match(mime, /aGVsbG8=/)
    assert.doesNotMatch(mime, /root:|Bcc/)
  })
})

test('hostile content cannot leave its part or its line', async (t) => {
  const chance = new Chance(seed)
  const count = Number(process.env['POSTERN_TEST_INPUTS'] ?? 300)
  const boundary = `=_postern-${composition.messageId.replaceAll('-', '')}-Part_`
  const pieces = [
    '\r',
    '\n',
    '\r\n',
    '.',
    '\0',
    ' ',
    '\t',
    '=',
    '--',
    'ü',
    '\u2028',
    'x'.repeat(100),
    ' '.repeat(90),
  ]
  pieces.push(
    `--${boundary}1`,
    `--${boundary}2--`,
    'Content-Type: text/html\r\n\r\n',
    'Bcc: x@example.com',
    '=20=\r\n',
    '\ud800',
  )
  const some = () => Array.from({ length: 1 + chance.below(12) }, () => chance.pick(pieces)).join('')
  for (let n = 0; n < count; n++) {
    const [text, html, subject, name, filename, file] = [some(), some(), some(), some(), some(), some()]
    const mime = await compose({
      from: { name: name.replace(/ +/g, ' ').replace(/\p{Cc}/gu, ''), address: 'ada@example.com' },
      ...{ text, html, subject },
      attachments: [
        {
          filename: `f${filename.slice(0, 190)}`,
          content_type: chance.pick(['text/plain', 'message/rfc822', `a/${some()}`]),
          content: Buffer.from(file).toString('base64'),
          content_id: 'c',
        },
        {
          filename: 'b',
          content_type: 'text/plain',
          content: Buffer.from(file).toString('base64'),
          content_id: null,
        },
      ],
    })
    assertWellFormed(mime)
    const mail = await PostalMime.parse(mime)
    const where = `round ${n}, seed ${chance.seed}`
    const lines = (body: string | undefined) => body?.replace(/\r\n|\r|\n/g, '\n').trimEnd()
    const wanted = (body: string) =>
      Buffer.from(body)
        .toString()
        .replace(/\r\n|\r|\n/g, '\n')
        .trimEnd()
    assert.equal(lines(mail.text), wanted(text), where)
    assert.equal(lines(mail.html), wanted(html), where)
    assert.equal(mail.attachments.length, 2, where)
    for (const { content } of mail.attachments) {
      assert.deepEqual(Buffer.from(content as ArrayBuffer), Buffer.from(file), where)
    }
    assert.equal(mail.headers.filter(({ key }) => key === 'bcc' || key === 'content-type').length, 1, where)
  }
  t.diagnostic(`${count} messages, seed ${chance.seed}`)
})
