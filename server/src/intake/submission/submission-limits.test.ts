import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'
import { BatchedKeyLookup } from '../../core/control/api-keys/batched-key-lookup.ts'
import { Acceptance } from '../../core/mail/messages/acceptance.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { ampleByteLimits } from '../../testing/fixtures/byte-limits.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { idIn, openSubmission, plainOf, someText, submit } from '../../testing/harness/submission-harness.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { makeCertificate } from '../../testing/peers/certificate.ts'
import { losingConnection, startPostgresProxy } from '../../testing/peers/postgres-proxy.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'
import { watchCertificate } from '../smtp/certificate.ts'

/** SMTP submission limits, and replies to internal failures. */
const database = await testDatabase()
const proxy = await startPostgresProxy(database.url)
const api = await startApi(database)
const { makeSender, makeApiKey } = senders(api, database, await signedIn(api))
const { open } = await openSubmission(api)
const sender = await makeSender()
const { name } = sender.domain
const line = `${'x'.repeat(998)}\r\n`

const messages = async (): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    'select count(*)::integer as count from mail.messages',
  )
  return row?.count ?? 0
}

describe('a message', () => {
  test('is limited to 25 MiB, with or without SIZE, and the session stays usable', async () => {
    const client = await open(sender.secret)
    const before = await messages()
    assert.match(await submit(client, '', { parameters: 'SIZE=26214401' }), /^552 5\.3\.4/)
    const huge = someText(name, { body: line.repeat(26_300) })
    assert.match(await submit(client, huge), /^552 5\.3\.4/)
    assert.equal(await messages(), before)
    idIn(await submit(client, someText(name, { body: line.repeat(25_000) })))
  })

  test('in many small chunks is stored unchanged', async () => {
    const client = await open(sender.secret)
    const id = idIn(await submit(client, someText(name, { body: `${'..\r\n...x\r\n'.repeat(10_000)}end` })))
    const [row] = await database.query<{ content: Buffer }>(
      'select content from mail.bodies where message_id = $1',
      [id],
    )
    assert.ok(row?.content.toString().endsWith(`\r\n\r\n${'.\r\n..x\r\n'.repeat(10_000)}end\r\n`))
  })

  test('has at most 50 recipients; additional recipients need another transaction', async () => {
    const client = await open(sender.secret)
    await client.say('MAIL FROM:<>')
    for (let n = 0; n < 50; n++)
      assert.match((await client.say(`RCPT TO:<a${n}@example.net>`)) ?? '', /^250 2\.1\.5/)
    assert.match((await client.say('RCPT TO:<b@example.net>')) ?? '', /^452 4\.5\.3/)
    await client.say('DATA')
    client.write(`${someText(name)}\r\n.\r\n`)
    idIn((await client.reply()) ?? '')
  })

  test('to an invalid address has no recipient', async () => {
    const client = await open(sender.secret)
    await client.say('MAIL FROM:<>')
    for (const address of [
      'postmaster',
      'a@localhost',
      'a@[127.0.0.1]',
      '"a"@example.net',
      'a b@example.net',
      '',
    ]) {
      assert.match((await client.say(`RCPT TO:<${address}>`)) ?? '', /^5(53|01) 5\.1\.3/, address)
    }
    assert.match((await client.say('DATA')) ?? '', /^503/)
  })
})

describe('all sessions together', () => {
  test('from one project use at most a quarter of the buffer budget and release it', async () => {
    const { open: openSmall } = await openSubmission(api, { limits: { bufferBytes: 4 * 300_000 } })
    const neighbour = await makeSender()
    const { secret } = await makeApiKey(sender.id, { mode: 'live', allowed_ips: [] })
    const [slow, other] = [await openSmall(sender.secret), await openSmall(secret)]
    for (const command of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await slow.say(command)
    slow.write(`${someText(name)}\r\n${line.repeat(150)}`)
    const large = someText(name, { body: line.repeat(150) })
    /** Whether there is room for another message. */
    const hasRoom = async () => {
      const reply = await other.say(`MAIL FROM:<> SIZE=${large.length}`)
      await other.say('RSET')
      return /^250/.test(reply ?? '')
    }
    await eventually('the slow message is charged', async () => !(await hasRoom()))
    assert.match(await submit(other, large, { parameters: `SIZE=${large.length}` }), /^452 4\.3\.1/)
    assert.match(await submit(other, large), /^452 4\.3\.1/)
    idIn(await submit(other, someText(name)))
    const theirs = someText(neighbour.domain.name, { body: line.repeat(150) })
    idIn(await submit(await openSmall(neighbour.secret), theirs, { parameters: `SIZE=${theirs.length}` }))
    slow.write('\r\n.\r\n')
    idIn((await slow.reply()) ?? '')
    idIn(await submit(other, large, { parameters: `SIZE=${large.length}` }))
    // A client that disconnects in the middle of a message also releases its memory.
    for (const command of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await slow.say(command)
    slow.write(`${someText(name)}\r\n${line.repeat(150)}`)
    await eventually('the slow message is charged', async () => !(await hasRoom()))
    slow.close()
    await eventually('its memory is released', hasRoom)
    idIn(await submit(other, large, { parameters: `SIZE=${large.length}` }))
  })

  test('from one network are limited', async () => {
    const { open: openFew } = await openSubmission(api, { limits: { clientsPerNetwork: 3 } })
    const clients = [await openFew(), await openFew(), await openFew()]
    await assert.rejects(openFew(), 'a fourth connection was accepted')
    for (const client of clients) client.close()
    const next = await eventually('another connection is accepted', () =>
      openFew(sender.secret).catch(() => undefined),
    )
    idIn(await submit(next, someText(name)))
  })
})

describe('a session', () => {
  test('can send a limited number of messages', async () => {
    const { open: openShort } = await openSubmission(api, { limits: { mailsPerSession: 2 } })
    const client = await openShort(sender.secret)
    for (let n = 0; n < 2; n++) idIn(await submit(client, someText(name)))
    assert.match(await submit(client, someText(name)), /^421 4\.7\.0 Too many messages/)
    assert.equal(await client.say('NOOP'), undefined)
  })

  test('can cause a limited number of errors', async () => {
    const client = await open(sender.secret)
    let refused = 0
    while ((await client.say('RCPT TO:<x>'))?.startsWith('5')) refused++
    assert.equal(refused, 100)
    assert.equal(await client.say('NOOP'), undefined)
  })

  test('that ends in the middle of a message submits nothing', async () => {
    const before = await messages()
    const client = await open(sender.secret)
    for (const command of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await client.say(command)
    client.write(someText(name))
    client.close()
    await sleep(300)
    assert.equal(await messages(), before)
  })

  test('can finish its message when the listener shuts down', async () => {
    const ending = await openSubmission(api)
    const [busy, idle] = [await ending.open(sender.secret), await ending.open(sender.secret)]
    for (const command of ['MAIL FROM:<>', 'RCPT TO:<anna@example.net>', 'DATA']) await busy.say(command)
    const stopped = ending.stop(patienceMs)
    assert.match((await idle.reply()) ?? '', /^421 4\.3\.2/)
    busy.write(`${someText(name)}\r\n.\r\n`)
    idIn((await busy.reply()) ?? '')
    await stopped
    await assert.rejects(SmtpClient.open(ending.startTls.port))
  })
})

describe('an unavailable database', () => {
  const away = openDatabase({ ...database, url: database.url.replace(/:\d+\//, ':1/') }).as('mail')

  test('causes a 454 reply to AUTH, which does not count as an authentication failure', async () => {
    const { open: openAway } = await openSubmission(api, {
      keys: new BatchedKeyLookup(away),
      limits: { failedAuthPerMinute: 1 },
    })
    const client = await openAway()
    for (let n = 0; n < 3; n++) {
      assert.match((await client.say(plainOf(sender.secret))) ?? '', /^454 4\.7\.0/)
    }
  })

  test("causes a 451 reply to a message, before the commit and when the commit's response is lost", async () => {
    const db = openDatabase({ ...database, url: proxy.urlOf(database.url) })
    const acceptance = new Acceptance(db.as('mail'), ['service'], ampleByteLimits)
    const { open: openCut } = await openSubmission(api, { acceptance })
    const client = await openCut(sender.secret)
    for (const moment of ['onStatement', 'onDone'] as const) {
      const before = await messages()
      const reply = await losingConnection(proxy, moment, () => submit(client, someText(name)))
      assert.match(reply, /^451 4\.3\.0/, moment)
      // The client cannot know whether the commit succeeded; its retry creates a second message.
      assert.equal(await messages(), before + (moment === 'onDone' ? 1 : 0))
      idIn(await submit(client, someText(name)))
    }
  })
})

describe('a certificate that is renewed on disk', () => {
  test('is used without a restart unless it is unusable', async () => {
    const [own, next] = [makeCertificate(), makeCertificate()]
    const { tls, startTls, open: openNow } = await openSubmission(api, { tls: own })
    const logLines: string[] = []
    const end = watchCertificate(own.files, own, {
      log: createLogger('info', { write: (entry) => void logLines.push(entry) }),
      everyMs: 50,
      onRenewed: (certificate) => [tls, startTls].forEach((listener) => void listener.renew(certificate)),
    })
    const seen = () =>
      new Promise<string>((resolve) => {
        const socket = connect({ host: '127.0.0.1', port: tls.port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256)
          socket.destroy()
        })
      })
    const first = await seen()
    // Incomplete: the key is still the old one.
    cpSync(next.files.certificate, own.files.certificate)
    await eventually('it is checked', () => logLines.some((entry) => /certificate unusable/.test(entry)))
    assert.equal(await seen(), first)
    const client = await openNow(sender.secret)
    cpSync(next.files.key, own.files.key)
    await eventually('the whole of it is used', async () => (await seen()) !== first)
    idIn(await submit(client, someText(name)))
    end()
  })
})
