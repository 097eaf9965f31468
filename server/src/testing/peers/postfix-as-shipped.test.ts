import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { createTransport } from 'nodemailer'
import { insideV4, insideV6 } from '../fixtures/private-hosts.ts'
import { Postfix, production } from './postfix.ts'
import { Sink } from './sink.ts'
import { SmtpClient } from './smtp-client.ts'

/** Tests deploy/postfix with a real Postfix. */
const [sink, feedback] = [await Sink.open(), await Sink.open()]
const ports = { sinkPort: sink.port, feedbackPort: feedback.port }
const postfix = await Postfix.open(ports)

/** The value of a key in a lookup table; empty without an entry. */
const lookUp = (table: string, key: string): Promise<string> =>
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

describe('the filter for internal hosts', () => {
  it('ignores every DNS answer with an internal address', async () => {
    for (const address of insideV4)
      assert.equal(await lookUp('inside', `mx.example.net. 300 IN A ${address}`), 'IGNORE', address)
    for (const address of insideV6)
      assert.equal(await lookUp('inside', `mx.example.net. 300 IN AAAA ${address}`), 'IGNORE', address)
  })

  it('accepts public addresses', async () => {
    for (const address of publicV4)
      assert.equal(await lookUp('inside', `mx.example.net. 300 IN A ${address}`), '', address)
    for (const address of publicV6)
      assert.equal(await lookUp('inside', `mx.example.net. 300 IN AAAA ${address}`), '', address)
    assert.equal(await lookUp('inside', 'example.net. 300 IN MX 10 mx.example.net.'), '')
  })

  it('is printed in the operations guide', async () => {
    const page = await readFile(path.resolve(production, '../../docs/operations/mta.md'), 'utf8')
    assert.ok(page.includes((await readFile(path.join(production, 'inside'), 'utf8')).trim()))
  })
})

describe('the shipped Postfix configuration', () => {
  const handOver = async (recipient: string, mail: string): Promise<SmtpClient> => {
    const client = await SmtpClient.open(postfix.port)
    for (const line of ['EHLO postern', 'MAIL FROM:<a@example.org>', `RCPT TO:<${recipient}>`, 'DATA'])
      await client.say(line)
    client.write(`${mail}\r\n.\r\n`)
    return client
  }

  it('routes its reports to the intake, and mail for bounces.* of other organisations to their hosts', async () => {
    for (const recipient of ['info@bounces.other.example', 'bounce-abc@bounces.shop.example.org']) {
      const mail = `Subject: Hello\r\nFrom: a@example.org\r\n\r\nHello.`
      assert.match((await (await handOver(recipient, mail)).reply()) ?? '', /^250 /)
      await sink.next(({ to }) => to[0] === recipient)
    }
    sink.treat('refused@bounces.other.example', { at: 'rcpt', answer: '550 5.1.1 No such user' })
    await (await handOver('refused@bounces.other.example', 'Subject: Hello\r\n\r\nHello.')).reply()
    const report = await feedback.next(({ to }) => to[0] === 'a@example.org')
    assert.match(report.raw.toString(), /^Final-Recipient: rfc822; refused@bounces\.other\.example\r$/m)
    assert.deepEqual(
      feedback.received.map(({ to }) => to[0]),
      ['a@example.org'],
    )
  })

  it('rejects mail from unknown clients', async () => {
    const closed = await Postfix.open({ ...ports, neighbours: '192.0.2.1' })
    const transport = createTransport({ host: '127.0.0.1', port: closed.port })
    const mail = { from: 'a@example.org', to: 'stranger@example.net', text: 'Hello.' }
    await assert.rejects(transport.sendMail(mail), { responseCode: 554 })
    assert.deepEqual(await closed.queue(), [])
  })

  it('does not change an incomplete header', async () => {
    const mail = 'From: anna\r\nTo: Bea <bea>\r\nSubject: Hello\r\n\r\nHello.'
    assert.match((await (await handOver('bea@example.net', mail)).reply()) ?? '', /^250 /)
    const { raw } = await sink.next(({ to }) => to[0] === 'bea@example.net')
    assert.ok(raw.toString().endsWith(`\r\n${mail}\r\n`))
    assert.doesNotMatch(raw.toString(), /^(Date|Message-ID):/m)
  })

  it('rejects SMTP smuggling', async () => {
    const second = 'MAIL FROM:<x@example.org>\r\nRCPT TO:<smuggled@example.net>\r\nDATA\r\nBoo.'
    const client = await handOver('carl@example.net', `Subject: One\r\n\r\nHello.\n.\n${second}`)
    await client.reply()
    await sink.next(({ to }) => to[0] === 'carl@example.net')
    assert.equal(
      sink.received.some(({ to }) => to[0] === 'smuggled@example.net'),
      false,
    )
  })
})
