import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { createTransport } from 'nodemailer'
import { insideV4, insideV6 } from '../fixtures/private-hosts.ts'
import { Postfix, production } from './postfix.ts'
import { Sink } from './sink.ts'
import { SmtpClient } from './smtp-client.ts'

/** What deploy/postfix says, asked of Postfix itself. */
const [sink, feedback] = [await Sink.open(), await Sink.open()]
const ports = { sinkPort: sink.port, feedbackPort: feedback.port }
const postfix = await Postfix.open(ports)

/** What a table answers for a key; empty if it has no entry. */
const look = (table: string, key: string): Promise<string> =>
  postfix.lookUp(`regexp:${path.join(production, table)}`, key)

const publicV4 = [
  '1.1.1.1',
  '9.9.9.9',
  '100.63.255.255',
  '100.128.0.0',
  '172.15.0.1',
  '172.32.0.1',
  '192.1.0.1',
]
const publicV6 = ['2001:4860:4860::8888', '2001:200::1', '2606:4700:4700::1111', '2a00:1450::1', '3ffe::1']

describe('the filter for hosts inside', () => {
  it('drops every answer that leads inside', async () => {
    for (const address of insideV4)
      assert.equal(await look('inside', `mx.example.net. 300 IN A ${address}`), 'IGNORE', address)
    for (const address of insideV6)
      assert.equal(await look('inside', `mx.example.net. 300 IN AAAA ${address}`), 'IGNORE', address)
  })

  it('leaves the public internet alone', async () => {
    for (const address of publicV4)
      assert.equal(await look('inside', `mx.example.net. 300 IN A ${address}`), '', address)
    for (const address of publicV6)
      assert.equal(await look('inside', `mx.example.net. 300 IN AAAA ${address}`), '', address)
    assert.equal(await look('inside', 'example.net. 300 IN MX 10 mx.example.net.'), '')
  })

  it('is the one that the operators read about', async () => {
    const page = await readFile(path.resolve(production, '../../docs/operations/mta.md'), 'utf8')
    assert.ok(page.includes((await readFile(path.join(production, 'inside'), 'utf8')).trim()))
  })
})

describe('a Postfix as it is shipped', () => {
  const hand = async (recipient: string, mail: string): Promise<SmtpClient> => {
    const client = await SmtpClient.open(postfix.port)
    for (const line of ['EHLO postern', 'MAIL FROM:<a@example.org>', `RCPT TO:<${recipient}>`, 'DATA'])
      await client.say(line)
    client.write(`${mail}\r\n.\r\n`)
    return client
  }

  it('brings its reports to the intake, and mail for a bounces.* of others to its own host', async () => {
    for (const recipient of ['info@bounces.other.example', 'bounce-abc@bounces.shop.example.org']) {
      const mail = `Subject: Hello\r\nFrom: a@example.org\r\n\r\nHello.`
      assert.match((await (await hand(recipient, mail)).reply()) ?? '', /^250 /)
      await sink.next(({ to }) => to[0] === recipient)
    }
    sink.treat('refused@bounces.other.example', { at: 'rcpt', answer: '550 5.1.1 No such user' })
    await (await hand('refused@bounces.other.example', 'Subject: Hello\r\n\r\nHello.')).reply()
    const report = await feedback.next(({ to }) => to[0] === 'a@example.org')
    assert.match(report.raw.toString(), /^Final-Recipient: rfc822; refused@bounces\.other\.example\r$/m)
    assert.deepEqual(
      feedback.received.map(({ to }) => to[0]),
      ['a@example.org'],
    )
  })

  it('takes nothing from whom it does not know', async () => {
    const closed = await Postfix.open({ ...ports, neighbours: '192.0.2.1' })
    const transport = createTransport({ host: '127.0.0.1', port: closed.port })
    const mail = { from: 'a@example.org', to: 'stranger@example.net', text: 'Hello.' }
    await assert.rejects(transport.sendMail(mail), { responseCode: 554 })
    assert.deepEqual(await closed.queue(), [])
  })

  it('leaves the header as it is, incomplete as that may be', async () => {
    const mail = 'From: anna\r\nTo: Bea <bea>\r\nSubject: Hello\r\n\r\nHello.'
    assert.match((await (await hand('bea@example.net', mail)).reply()) ?? '', /^250 /)
    const { raw } = await sink.next(({ to }) => to[0] === 'bea@example.net')
    assert.ok(raw.toString().endsWith(`\r\n${mail}\r\n`))
    assert.doesNotMatch(raw.toString(), /^(Date|Message-ID):/m)
  })

  it('lets nobody hide a second mail in a first', async () => {
    const second = 'MAIL FROM:<x@example.org>\r\nRCPT TO:<smuggled@example.net>\r\nDATA\r\nBoo.'
    const client = await hand('carl@example.net', `Subject: One\r\n\r\nHello.\n.\n${second}`)
    await client.reply()
    await sink.next(({ to }) => to[0] === 'carl@example.net')
    assert.equal(
      sink.received.some(({ to }) => to[0] === 'smuggled@example.net'),
      false,
    )
  })
})
