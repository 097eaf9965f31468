import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerDeps } from '../../context/context.ts'
import { ServiceProvider, smtpAddressOf } from '../../providers/smtp-transport.ts'
import { Dispatcher } from '../../worker/dispatcher.ts'
import { senders } from '../fixtures/sending-projects.ts'
import { startApi } from '../harness/api.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { signedIn } from '../harness/client.ts'
import { testDatabase } from '../harness/database.ts'
import { idIn, openSubmission, plainOf, someText, submit } from '../harness/submission-harness.ts'
import { eventually } from '../harness/waiting.ts'
import { SmtpPeer } from '../peers/smtp-peer.ts'

/**
 * Tests the whole path from a customer's first octet to the MTA: no message can smuggle in a second message, a command
 * or a header field. The MTA accepts every end-of-data sequence that any known MTA accepts, and drops NULs.
 */
const database = await testDatabase()
const api = await startApi(database)
const { makeSender } = senders(api, database, await signedIn(api))
const { open } = await openSubmission(api)
const sender = await makeSender()
await database.query(`update control.dkim_keys set state = 'active' where project_id = $1`, [sender.id])
const { name } = sender.domain

const peer = await SmtpPeer.start({ isLenient: true })
const service = new ServiceProvider({ hosts: [smtpAddressOf(new URL(peer.url))], name: 'postern.example' })
const { dispatch, log } = workerDeps(api.context)
const dispatcher = new Dispatcher({
  ...dispatch,
  db: api.context.cells.all[0].mail,
  log,
  transports: { service },
})
dispatcher.start()
cleanUp(async () => {
  await dispatcher.stop()
  service.close()
})

const ends = [
  '\n.\n',
  '\n.\r\n',
  '\r.\r\n',
  '\r\n.\n',
  '\r\n.\r',
  '\r.\r',
  '\n.\r',
  '\r\n\0.\r\n',
  '\r\n.\0\r\n',
  '\r\0\n.\r\n',
]
// The real end-of-data sequence, with the dot doubled as a client sends it within a message.
const stuffed = ['\r\n..\r\n', '\r\n...\r\n', '\r\n.. \r\n']
const hidden = [
  'MAIL FROM:<eve@evil.example>',
  'RCPT TO:<victim@example.org>',
  'DATA',
  'From: ceo@bank.example',
  '',
  'Pay.',
]

/** Inserts hostile text at each location of a message. */
const locations: Record<string, (text: string) => string> = {
  'the start of the body': (text) => someText(name, { body: text }),
  'the middle of the body': (text) => someText(name, { body: `Hello${text}Bye` }),
  'a part': (text) =>
    someText(name, {
      fields: ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b'],
      body: `--b\r\nContent-Type: text/plain\r\n\r\nHello${text}\r\n--b--`,
    }),
  'the value of a field': (text) => someText(name, { fields: [`X-Odd: a${text}b`] }),
  'a folded line': (text) => someText(name, { fields: [`X-Odd: a\r\n b${text}`] }),
  'the name of a field': (text) => someText(name, { fields: [`X${text}: b`] }),
  'the subject': (text) => someText(name).replace('Your order', `Your${text}order`),
  'the recipient': (text) => someText(name).replace('To: ', `To: a${text}`),
  "the sender's name": (text) => someText(name).replace('Shop', `Sh${text}op`),
  "the sender's address": (text) => someText(name).replace('orders@', `ord${text}ers@`),
}

const accepted: string[] = []

/** Submits one message in its own session and returns the reply. */
async function submitRaw(raw: string, pieces: 'in one write' | 'octet by octet'): Promise<string> {
  const client = await open(sender.secret)
  for (const line of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) {
    assert.match((await client.say(line)) ?? '', /^[23]/)
  }
  const octets = Buffer.from(`${raw}\r\n.\r\n`, 'latin1')
  if (pieces === 'in one write') client.write(octets)
  else for (const octet of octets) client.write(Buffer.of(octet))
  const reply = (await client.reply()) ?? 'gone'
  if (reply.startsWith('250')) accepted.push(idIn(reply))
  // The reply to a smuggled command would arrive before this one.
  const after = await client.say('NOOP')
  assert.ok(after === undefined || after.startsWith('250 2.0.0 OK'), after)
  client.close()
  return reply
}

const messages = async (): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    'select count(*)::integer as count from mail.messages',
  )
  return row?.count ?? 0
}

/** Waits until the peer has received all accepted messages, and then a moment longer for unexpected ones. */
async function handedOver(): Promise<typeof peer.mails> {
  await eventually('every accepted mail is handed over', () => peer.mails.length >= accepted.length)
  await sleep(300)
  return peer.mails
}

const fieldsOf = (raw: Buffer): string[] =>
  (raw.toString('latin1').split('\r\n\r\n')[0] ?? '')
    .split(/\r\n(?![ \t])/)
    .map((field) => (field.split(':')[0] ?? '').toLowerCase())

const expected = new Set(
  [
    'dkim-signature received from to subject date message-id x-postern-ref x-odd x mime-version content-type',
  ].flatMap((names) => names.split(' ')),
)

async function assertWhole(): Promise<void> {
  const mails = await handedOver()
  assert.equal(await messages(), accepted.length, 'a message was accepted without a 250 reply')
  assert.equal(mails.length, accepted.length, 'split')
  for (const { from, to, raw } of mails) {
    assert.ok(!`${from}${to}`.includes('evil') && to.length === 1 && to[0]?.includes('anna@example.net'))
    const names = fieldsOf(raw)
    assert.ok(
      names.every((one) => expected.has(one) || /^x[%=]/.test(one)) && new Set(names).size === names.length,
      names.join(),
    )
  }
}

describe('a submitted message, handed to an MTA that accepts every line ending', () => {
  test('stays one message even if it contains a lookalike of the end of data', async (t) => {
    let refused = 0
    for (const [location, make] of Object.entries(locations)) {
      for (const [n, end] of [...ends, ...stuffed].entries()) {
        const text = `${end}${hidden.join('\r\n')}${end}`
        const reply = await submitRaw(make(text), n % 4 === 0 ? 'octet by octet' : 'in one write')
        const where = `${location}: ${JSON.stringify(end)}: ${reply}`
        if (!reply.startsWith('250')) refused++
        const isHalf = /(?<!\r)\n|\r(?!\n)/.test(end)
        if (isHalf) assert.match(reply, /^521 5\.5\.2/, where)
        else if (end.includes('\0')) assert.match(reply, /^554 5\.6\.0/, where)
        else if (/body|part/.test(location)) assert.match(reply, /^250/, where)
      }
    }
    await assertWhole()
    t.diagnostic(`${accepted.length} accepted and handed over, ${refused} refused, 0 split`)
    assert.ok(accepted.length >= 9)
  })

  test('gains no header field from any line-breaking character', async (t) => {
    let refused = 0
    for (const sign of [
      '\n',
      '\r',
      '\0',
      '\r\0\n',
      '\v',
      '\f',
      '\x1c',
      '\x85',
      '\u2028',
      '%0d%0a',
      '=0D=0A',
    ]) {
      for (const [location, make] of Object.entries(locations)) {
        if (/body|part/.test(location)) continue
        const before = accepted.length
        const octets = Buffer.from(`${sign}Bcc: victim@example.org${sign}X-Injected: yes`).toString('latin1')
        const reply = await submitRaw(make(octets), 'in one write')
        if (accepted.length === before) refused++
        // An encoded line break is text.
        if (!/^[%=]/.test(sign)) assert.match(reply, /^5/, `${location}: ${JSON.stringify(sign)}`)
      }
    }
    await assertWhole()
    t.diagnostic(`${accepted.length} accepted in all, ${refused} refused, 0 injected`)
  })
})

describe('an envelope value', () => {
  test('that contains CR, LF or NUL does not inject a command or a message', async () => {
    const before = await messages()
    const commands = (value: string): string[][] => [
      [`EHLO a${value}`],
      ['EHLO a', `MAIL FROM:<a${value}@example.org>`],
      ['EHLO a', `MAIL FROM:<a@example.org${value}>`],
      ['EHLO a', `MAIL FROM:<a@example.org> SIZE=1${value}`],
      ['EHLO a', `MAIL FROM:<a@example.org> ENVID=a${value}`],
      ['EHLO a', 'MAIL FROM:<>', `RCPT TO:<anna${value}@example.net>`],
      ['EHLO a', 'MAIL FROM:<>', `RCPT TO:<anna@example.net${value}>`],
      ['EHLO a', 'MAIL FROM:<>', `RCPT TO:<anna@example.net> NOTIFY=NEVER${value}`],
    ]
    const injected = 'RCPT TO:<victim@example.org>'
    for (const sign of ['\n', '\r', '\0', '\r\r\n', '\n\r', '+0D+0A']) {
      for (const lines of commands(`${sign}${injected}${sign}`)) {
        const client = await open(sender.secret)
        for (const line of lines) await client.say(line)
        // Without an accepted recipient, DATA is rejected.
        const reply = (await client.say('DATA')) ?? 'gone'
        assert.match(reply, /^(503|gone)/, `${JSON.stringify(lines)}: ${reply}`)
        client.close()
      }
    }
    assert.equal(await messages(), before)
  })

  test('in AUTH must be exactly an API key', async () => {
    for (const sign of ['\n', '\r', '\0', '\r\n']) {
      const client = await open()
      const reply = await client.say(plainOf(`${sender.secret}${sign}`))
      assert.doesNotMatch(reply ?? 'gone', /^235/)
      assert.match(await submit(client, someText(name)), /^(530|gone)/)
      client.close()
    }
  })
})
