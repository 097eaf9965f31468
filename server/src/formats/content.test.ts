import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Attachment, attachmentsFault, type Content, checkHeaders, needsUtf8 } from './content.ts'

function faultOf(name: string, value: string): string {
  const checked = checkHeaders([{ name, value }])
  return 'fault' in checked ? checked.fault : ''
}

describe('custom headers', () => {
  test('are accepted unchanged', () => {
    const headers = [
      { name: 'In-Reply-To', value: '<1@example.com>' },
      { name: 'References', value: '<1@example.com> <2@example.com>' },
      { name: 'List-Id', value: '"News, daily" <news.example.com>' },
      { name: 'Precedence', value: 'bulk' },
      { name: 'Auto-Submitted', value: 'auto-generated' },
      { name: 'Feedback-ID', value: '1:2:3:example' },
      { name: 'X-Campaign', value: 'Frühling' },
      { name: 'X-Campaign', value: 'twice' },
      { name: "x!#$%&'*+.^_`{|}~", value: 'an unusual but valid name (RFC 5322)' },
    ]
    assert.deepEqual(checkHeaders(headers), headers)
    assert.deepEqual(checkHeaders([]), [])
  })

  test('cannot replace headers that the service writes, in upper or lower case', () => {
    for (const name of [
      'From To Cc Bcc Sender Reply-To Subject Date Message-ID MIME-Version Content-Type Content-Disposition',
      'Content-Transfer-Encoding Content-Anything Return-Path Received Received-SPF Delivered-To X-Original-To',
      'DKIM-Signature ARC-Seal ARC-Message-Signature Authentication-Results Resent-From Resent-Message-ID',
      'X-Postern-Ref X-SES-Configuration-Set X-SES-Message-Tags Errors-To Return-Receipt-To Apparently-To',
      'Disposition-Notification-To Disposition-Notification-Options Envelope-To',
    ].flatMap((line) => line.split(' '))) {
      for (const written of [name, name.toLowerCase(), name.toUpperCase()]) {
        assert.match(faultOf(written, 'x'), /senders cannot set/, written)
      }
    }
    for (const name of ['X-From', 'Fromage', 'X-Content-Type', 'To-Do', 'XX-SES-y'])
      assert.equal(faultOf(name, 'x'), '')
  })

  test('have names of printable ASCII characters other than the colon', () => {
    for (const name of [
      '',
      'X Y',
      'X:',
      'X\r\nBcc',
      'X\0',
      'X\t',
      'Ü',
      'X\x7f',
      'From ',
      ' From',
      'x'.repeat(101),
    ]) {
      assert.match(faultOf(name, 'x'), /printable ASCII/, JSON.stringify(name))
    }
  })

  test('have single-line values', () => {
    for (const sign of [
      '\r',
      '\n',
      '\r\n',
      '\0',
      '\t',
      '\x0b',
      '\x1b',
      '\x7f',
      '\x85',
      '\u2028',
      '\u2029',
      '\ud800',
    ]) {
      for (const value of [`${sign}a`, `a${sign}b`, `a${sign}`]) {
        assert.match(faultOf('X-A', value), /line break|empty/, JSON.stringify(value))
      }
    }
    assert.match(faultOf('X-A', ''), /empty/)
    assert.match(faultOf('X-A', '   '), /empty/)
  })

  test('have values that can be folded', () => {
    assert.equal(faultOf('X-A', `${'x'.repeat(800)} ${'x'.repeat(800)}`), '')
    assert.match(faultOf('X-A', 'x'.repeat(801)), /800 characters without a space/)
    assert.match(faultOf('X-A', 'a b '.repeat(501)), /2000/)
    assert.equal(faultOf('X-A', `a${' '.repeat(20)}b`), '')
    assert.match(faultOf('X-A', `a${' '.repeat(21)}b`), /20 consecutive spaces/)
    assert.equal(faultOf('X-A', 'ü'.repeat(1000)), '')
  })

  test('must be ASCII unless they contain text', () => {
    for (const name of [
      'In-Reply-To',
      'References',
      'List-Unsubscribe',
      'List-Id',
      'Feedback-ID',
      'OTP-Token',
    ]) {
      assert.match(faultOf(name, '<ü@example.com>'), /not ASCII/)
    }
    const twice = checkHeaders([
      { name: 'In-Reply-To', value: '<1@example.com>' },
      { name: 'in-reply-to', value: '<2@example.com>' },
    ])
    assert.match('fault' in twice ? twice.fault : '', /twice/)
  })

  test('are limited to fifty', () => {
    const many = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `X-${n}`, value: 'x' }))
    assert.ok(!('fault' in checkHeaders(many(50))))
    assert.ok('fault' in checkHeaders(many(51)))
  })

  test('get one-click unsubscribe (RFC 8058) if List-Unsubscribe has an HTTPS URL', () => {
    const added = (value: string, ...more: { name: string; value: string }[]) => {
      const checked = checkHeaders([{ name: 'list-unsubscribe', value }, ...more])
      if ('fault' in checked) assert.fail(checked.fault)
      return checked.slice(1 + more.length)
    }
    const post = { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' }
    assert.deepEqual(added('<https://example.com/u?x=1>'), [post])
    assert.deepEqual(added('<mailto:u@example.com>, <https://example.com/u>'), [post])
    assert.deepEqual(added('<mailto:u@example.com>'), [])
    assert.deepEqual(added('<http://example.com/u>'), [])
    assert.deepEqual(added('<https://example.com/u>', { ...post, name: 'LIST-UNSUBSCRIBE-POST' }), [])
  })
})

describe('attachments', () => {
  const attachment = { filename: 'a.pdf', content_type: 'application/pdf', content: 'AAAA', content_id: null }
  const faultOf = (change: Partial<Attachment>) => attachmentsFault([{ ...attachment, ...change }])

  test('are accepted with a name, a type and base64 content', () => {
    assert.equal(faultOf({}), undefined)
    for (const content_type of [
      'text/calendar; method=REQUEST; charset=utf-8',
      'text/plain;charset="utf-8"',
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      'image/svg+xml',
    ]) {
      assert.equal(faultOf({ content_type }), undefined, content_type)
    }
    assert.equal(
      faultOf({ content: '', content_id: 'logo@example.com', filename: 'Übersicht 2.pdf' }),
      undefined,
    )
  })

  test('are rejected if they contain text that could break out of its header field', () => {
    for (const filename of ['', 'a\r\nb', 'a\0', '../a', 'a\\b', '\ud800', 'x'.repeat(201)]) {
      assert.match(faultOf({ filename }) ?? '', /file names/, JSON.stringify(filename))
    }
    for (const content_type of [
      '',
      'pdf',
      'a/b/c',
      'a/b\r\nX: y',
      'a/b; c',
      'a/b; c="d',
      'a/b; c="d\r\n"',
      'a/ü',
      'a/b;;c=d',
    ]) {
      assert.match(faultOf({ content_type }) ?? '', /content type/, JSON.stringify(content_type))
    }
    for (const content_id of ['', 'a b', '<a>', 'a\r\n', 'ü', 'x'.repeat(201)]) {
      assert.match(faultOf({ content_id }) ?? '', /content id/, JSON.stringify(content_id))
    }
    for (const content of ['A', 'AAA', 'AA-_', 'AAAA\n', 'AA=A', '====']) {
      assert.match(faultOf({ content }) ?? '', /base64/, content)
    }
    for (const content_type of ['message/rfc822', 'multipart/mixed; boundary=x', 'Message/Delivery-Status']) {
      assert.match(faultOf({ content_type }) ?? '', /is composite/)
    }
    assert.match(attachmentsFault(Array.from({ length: 51 }, () => attachment)) ?? '', /50/)
  })
})

test('a message needs RFC 6531 if an address in its header is not ASCII', () => {
  const someone = { name: 'Jörg', address: 'joerg@xn--bcher-kva.example' }
  const content: Content = {
    from: someone,
    to: [someone],
    cc: [],
    reply_to: [],
    subject: 'ü',
    text: 'ü',
    html: null,
    headers: [],
    attachments: [],
  }
  const abroad = { name: null, address: 'jörg@example.com' }
  assert.equal(needsUtf8(content), false)
  for (const change of [
    { from: abroad },
    { to: [someone, abroad] },
    { cc: [abroad] },
    { reply_to: [abroad] },
  ]) {
    assert.equal(needsUtf8({ ...content, ...change }), true)
  }
})
