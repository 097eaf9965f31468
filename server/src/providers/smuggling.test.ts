import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { composeMime } from '../formats/compose.ts'
import { attachmentsFault, type Content, checkHeaders } from '../formats/content.ts'
import { readMailbox } from '../formats/mailbox.ts'
import { someMail } from '../testing/fixtures/mail-samples.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { SmtpPeer } from '../testing/peers/smtp-peer.ts'
import { ServiceProvider, smtpAddressOf } from './smtp-transport.ts'

// Every sequence that an MTA is known to accept as the end of a message, and some with a NUL that MTAs drop.
const ends = [
  '\r\n.\r\n',
  '\n.\n',
  '\n.\r\n',
  '\r.\r\n',
  '\r\n.\n',
  '\r\n.\r',
  '\r.\r',
  '\0\r\n.\r\n',
  '\r\n\0.\r\n',
  '\r\n.\0\r\n',
]
const smuggled =
  'MAIL FROM:<eve@evil.example>\r\nRCPT TO:<victim@example.org>\r\nDATA\r\nFrom: ceo@example.com\r\n\r\nPay.\r\n.\r\n'
const breaks = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\r\n ',
  '\n\t',
  '\v',
  '\f',
  '\x85',
  '\u2028',
  '\u2029',
  '\r\n\r\n',
  '%0d%0a',
  '\udc0a',
]

const peer = await SmtpPeer.start({ isLenient: true })
const service = new ServiceProvider({ hosts: [smtpAddressOf(new URL(peer.url))], name: 'postern.example' })
cleanUp(async () => service.close())

const composition = {
  messageId: '0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b',
  domain: 'example.com',
  date: new Date(0),
}
const plain: Content = {
  from: { name: 'Ada', address: 'ada@example.com' },
  to: [{ name: 'Bob', address: 'bob@example.org' }],
  cc: [{ name: 'Eve', address: 'eve@example.org' }],
  reply_to: [{ name: 'Desk', address: 'desk@example.com' }],
  subject: 'Hello',
  text: 'Hello',
  html: '<p>Hello</p>',
  headers: [{ name: 'X-Tag', value: 'tag' }],
  attachments: [{ filename: 'a.txt', content_type: 'text/plain', content: 'AAAA', content_id: null }],
}

/**
 * Every part of a message that a sender controls, with hostile text in it, as if no input had been validated.
 */
const parts: Record<string, (text: string) => Partial<Content>> = {
  text: (text) => ({ text: `a${text}b` }),
  'text alone': (text) => ({ text, html: null, attachments: [] }),
  html: (text) => ({ html: `<p>${text}</p>` }),
  subject: (text) => ({ subject: `a${text}b` }),
  'name of the sender': (text) => ({ from: { ...plain.from, name: `a${text}b` } }),
  'address of the sender': (text) => ({ from: { ...plain.from, address: `a${text}b@example.com` } }),
  'name of a recipient': (text) => ({ to: [{ name: text, address: 'bob@example.org' }] }),
  'address of a recipient': (text) => ({ to: [{ name: null, address: `bob@example.org${text}` }] }),
  'name in Cc': (text) => ({ cc: [{ name: `a${text}`, address: 'bob@example.org' }] }),
  'name in Reply-To': (text) => ({ reply_to: [{ name: `a${text}`, address: 'bob@example.org' }] }),
  'value of a header': (text) => ({ headers: [{ name: 'X-Tag', value: `a${text}b` }] }),
  'name of a header': (text) => ({ headers: [{ name: `X-Tag${text}`, value: 'b' }] }),
}
for (const content_type of ['text/plain', 'message/rfc822']) {
  parts[`content of an attachment, ${content_type}`] = (text) => ({
    attachments: [
      { filename: 'a', content_type, content: Buffer.from(`a${text}b`).toString('base64'), content_id: null },
    ],
  })
}
for (const field of ['filename', 'content_type', 'content_id'] as const) {
  parts[`${field} of an attachment`] = (text) => ({
    attachments: [
      { filename: 'a', content_type: 'a/b', content: 'AAAA', content_id: 'c', [field]: `text/a${text}b` },
    ],
  })
}

const fieldNames = (raw: string): string[] =>
  (raw.split('\r\n\r\n')[0] ?? '')
    .split('\r\n')
    .filter((line) => !/^[ \t]/.test(line))
    .map((line) => (line.split(':')[0] ?? '').toLowerCase())

const wanted =
  'cc content-transfer-encoding content-type date from message-id mime-version reply-to subject to x-tag'.split(
    ' ',
  )

/**
 * Sends a message to the peer, which accepts every line ending, and asserts that the peer received one
 * message with the expected fields.
 */
async function assertOneMail(raw: Buffer, where: string): Promise<void> {
  const [mails, commands] = [peer.mails.length, peer.commands.length]
  const handover = await service.send(someMail({ raw }))
  assert.equal(handover.kind, 'sent', where)
  // Any smuggled text would be read as a command at this point.
  const next = await service.send(someMail())
  assert.equal(next.kind, 'sent', where)
  assert.equal(peer.mails.length - mails, 2, `${where}: split`)
  const verbs = peer.commands.slice(commands).map((line) => line.split(/[ :]/)[0])
  assert.deepEqual(
    verbs.filter((verb) => verb !== 'EHLO' && verb !== 'QUIT'),
    ['MAIL', 'RCPT', 'DATA', 'MAIL', 'RCPT', 'DATA'],
    where,
  )
  assert.ok(
    peer.mails.slice(mails).every(({ from, to }) => !`${from}${to}`.includes('evil') && to.length === 1),
    where,
  )
}

describe('a message sent to an MTA that accepts every line ending', () => {
  test('stays one message even if it contains sequences that look like its end', async (t) => {
    let [sent, refused] = [0, 0]
    for (const [part, change] of Object.entries(parts)) {
      for (const end of ends) {
        for (const text of [`${end}${smuggled}`, `x${end}${smuggled}${end}`, `${end.repeat(3)}${smuggled}`]) {
          const raw = await composeMime({ ...plain, ...change(text) }, composition).catch(() => undefined)
          const where = `${part}: ${JSON.stringify(text.slice(0, 20))}`
          if (!raw) {
            refused++
            continue
          }
          sent++
          await assertOneMail(raw, where)
          const names = fieldNames(peer.mails.at(-2)?.raw.toString('latin1') ?? '')
          assert.ok(
            names.every((name) => wanted.includes(name)) && new Set(names).size === names.length,
            `${where}: ${names}`,
          )
        }
      }
    }
    t.diagnostic(`${sent} messages handed over, ${refused} not even composed`)
    assert.ok(sent > 300)
  })

  test('stays one message if it was submitted by SMTP, and is never sent with a NUL', async () => {
    for (const end of ends) {
      const raw = Buffer.from(`From: ada@example.com\r\n\r\nHello${end}${smuggled}${end}`, 'latin1')
      if (end.includes('\0')) {
        const handover = await service.send(someMail({ raw }))
        assert.ok(handover.kind === 'refused' && handover.isPermanent && handover.status === '5.6.0')
      } else {
        await assertOneMail(raw, JSON.stringify(end))
      }
    }
    for (const start of ['.\r\n', '.', '..\r\n', '.\n', '\r\n.\r\n'])
      await assertOneMail(Buffer.from(`${start}${smuggled}`), start)
  })

  test('is split by this peer without dot-stuffing, which shows that the test detects smuggling', async () => {
    const before = peer.mails.length
    for (const end of ends.filter((end) => !end.includes('\0'))) {
      const socket = connect(Number(new URL(peer.url).port), '127.0.0.1')
      const script = `EHLO x\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<a@b.c>\r\nDATA\r\nHello${end}${smuggled}QUIT\r\n`
      await new Promise((resolve) => socket.on('close', resolve).resume().end(script))
    }
    assert.equal(peer.mails.length - before, 2 * 7)
  })
})

describe('a line break in a value', () => {
  test('adds no field to the header, in any value', async (t) => {
    let [sent, refused] = [0, 0]
    for (const [part, change] of Object.entries(parts)) {
      for (const sign of breaks) {
        const text = `${sign}Bcc: victim@example.org${sign}X-Injected: yes${sign}`
        const raw = await composeMime({ ...plain, ...change(text) }, composition).catch(() => undefined)
        if (!raw) {
          refused++
          continue
        }
        sent++
        const where = `${part}: ${JSON.stringify(sign)}`
        await assertOneMail(raw, where)
        const names = fieldNames(peer.mails.at(-2)?.raw.toString('latin1') ?? '')
        assert.ok(
          names.every((name) => wanted.includes(name)) && new Set(names).size === names.length,
          `${where}: ${names}`,
        )
      }
    }
    t.diagnostic(`${sent} messages handed over, ${refused} not even composed`)
  })

  test('is rejected in input from senders and in an envelope', async () => {
    for (const sign of ['\r\n', '\n', '\r', '\0']) {
      assert.ok('fault' in readMailbox(`a${sign}b <ada@example.com>`))
      assert.ok('fault' in readMailbox(`ada@example.com${sign}`))
      assert.ok('fault' in checkHeaders([{ name: 'X-Tag', value: `a${sign}b` }]))
      assert.ok('fault' in checkHeaders([{ name: `X${sign}`, value: 'a' }]))
      assert.ok(
        attachmentsFault([{ filename: `a${sign}`, content_type: 'a/b', content: '', content_id: null }]),
      )
      const sessions = peer.sessions
      for (const change of [
        { envelope: { from: `a${sign}@example.com`, to: 'bob@example.org' } },
        { envelope: { from: `a@example.com${sign}`, to: 'bob@example.org' } },
        { envelope: { from: 'a@example.com', to: `bob@example.org${sign}` } },
        { envelope: { from: 'a@example.com', to: `bob@example.org>${sign}RCPT TO:<victim@example.org` } },
        { dsn: { envid: `a${sign}` } },
      ]) {
        assert.equal((await service.send(someMail(change))).kind, 'refused')
      }
      assert.equal(peer.sessions, sessions)
    }
  })
})
