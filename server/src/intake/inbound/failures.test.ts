import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ampleByteLimits } from '../../testing/fixtures/byte-limits.ts'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { openInbound, someMail } from '../../testing/harness/inbound-harness.ts'
import { submit } from '../../testing/harness/submission-harness.ts'
import { losingConnection, startPostgresProxy } from '../../testing/peers/postgres-proxy.ts'
import type { SmtpClient } from '../../testing/peers/smtp-client.ts'

/** Acknowledged mail is stored, and mail data cannot smuggle in a second message. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeReceiver } = receivers(database, admin)
const proxy = await startPostgresProxy(database.url)
const db = openDatabase({ ...database, url: proxy.urlOf(database.url) }).as('mail')
const { open, inboundOf, eventsOf } = await openInbound(api, database, { routes: db, mailOf: () => db })
const shop = await makeReceiver()
await shop.route(null, shop.toEndpoint)

const count = async () => (await inboundOf(shop.id)).length

describe('an unavailable database', () => {
  test('before the commit stores nothing; after the commit, when the response is lost, stores the message twice', async () => {
    const target = await makeReceiver()
    await target.route(null, target.toEndpoint)
    const there = async () => (await inboundOf(target.id)).length
    for (const [moment, left] of [
      ['onStatement', 0],
      ['onDone', 1],
    ] as const) {
      const before = await there()
      const client = await open()
      await client.begin(target.at('x'))
      const reply = await losingConnection(proxy, moment, () => {
        client.write(`${someMail()}\r\n.\r\n`)
        return client.reply()
      })
      assert.match(reply ?? '', /^451 4\.3\.0/, moment)
      assert.equal(await there(), before + left, moment)
      assert.match(await submit(await open(), someMail(), { to: [target.at('x')] }), /^250/)
      assert.equal(await there(), before + left + 1)
      assert.equal((await eventsOf(target.id)).length, await there())
    }
  })

  test('causes a 451 reply to RCPT', async () => {
    const url = new URL(database.url)
    url.port = '1'
    const away = await openInbound(api, database, {
      routes: openDatabase({ ...database, url: url.href }).as('mail'),
    })
    assert.match(await submit(await away.open(), someMail(), { to: [shop.at('x')] }), /^451 4\.3\.0/)
  })
})

describe('a project that has used up its inbound byte quota', () => {
  test('receives and stores no more mail, while other projects still receive theirs', async () => {
    const limited = await openInbound(api, database, {
      byteLimits: { ...ampleByteLimits, max_inbound_bytes_per_day: 100_000 },
    })
    const [full, other] = [await makeReceiver(), await makeReceiver()]
    for (const one of [full, other]) await one.route(null, one.toEndpoint)
    await full.route('dropped', { action: 'drop' })
    const bring = async (to: string, text = '') =>
      (await submit(await limited.open(), `${someMail()}${text}`, { to: [to] })).slice(0, 9)
    const large = 'x'.repeat(70).concat('\r\n').repeat(400)
    assert.equal(await bring(full.at('x'), large), '250 2.0.0')
    assert.equal(await bring(full.at('x'), large), '452 4.2.2')
    assert.equal((await inboundOf(full.id)).length, 1)
    const bodies = await database.query('select from mail.inbound_bodies where project_id = $1', [full.id])
    assert.equal(bodies.length, 1)
    assert.equal(await bring(other.at('x'), large), '250 2.0.0')
    // Rows also count: dropped mail has no body but still uses quota.
    const replies = new Set<string>()
    for (let no = 0; no < 50 && !replies.has('452 4.2.2'); no++) replies.add(await bring(full.at('dropped')))
    assert.deepEqual(replies, new Set(['250 2.0.0', '452 4.2.2']))
  })
})

const ends: Record<string, string> = {
  'LF . LF': '\n.\n',
  'LF . CR LF': '\n.\r\n',
  'CR . CR LF': '\r.\r\n',
  'CR LF . LF': '\r\n.\n',
  'CR LF . CR': '\r\n.\r',
  'CR . CR': '\r.\r',
  'LF . CR': '\n.\r',
  'CR LF NUL . CR LF': '\r\n\0.\r\n',
  'CR LF . NUL CR LF': '\r\n.\0\r\n',
  'CR NUL LF . CR LF': '\r\0\n.\r\n',
  'CR LF . . CR LF': '\r\n..\r\n',
  'CR LF . . . CR LF': '\r\n...\r\n',
  'CR LF . . space CR LF': '\r\n.. \r\n',
}

describe('the end of a message', () => {
  const hidden = `MAIL FROM:<eve@evil.example>\r\nRCPT TO:<${shop.at('hidden')}>\r\nDATA\r\nSubject: hidden\r\n\r\n`
  const bring = async (client: SmtpClient, raw: string, pieces: string) => {
    await client.begin(shop.at('open'))
    if (pieces === 'at once') client.write(raw)
    else for (const byte of Buffer.from(raw, 'latin1')) client.write(Buffer.of(byte))
    return client.reply()
  }

  for (const [name, end] of Object.entries(ends)) {
    for (const pieces of ['at once', 'byte by byte']) {
      test(`is not ${name}, sent ${pieces}`, async () => {
        const before = await count()
        const client = await open()
        const reply = await bring(client, `${someMail()}${end}${hidden}Hello\r\n.\r\n`, pieces)
        const isWell = !/(?<!\r)\n|\r(?!\n)/.test(end)
        const isNul = end.includes('\0')
        assert.match(reply ?? '', isWell ? (isNul ? /^554 5\.6\.0/ : /^250/) : /^521 5\.5\.2/)
        await client.say('NOOP')
        const rows = await inboundOf(shop.id)
        assert.deepEqual(
          rows.filter(({ recipient }) => recipient === shop.at('hidden')),
          [],
        )
        assert.equal(rows.length, before + (isWell && !isNul ? 1 : 0))
        client.close()
      })
    }
  }

  test('is CR LF . CR LF, and a separate message follows', async () => {
    const client = await open()
    await bring(client, `${someMail()}\r\n.\r\n${hidden}Hello\r\n.\r\n`, 'at once')
    for (const expected of [/^250/, /^250/, /^354/, /^250/]) {
      assert.match((await client.reply()) ?? '', expected)
    }
    assert.equal(
      (await inboundOf(shop.id)).filter(({ recipient }) => recipient === shop.at('hidden')).length,
      1,
    )
  })
})
