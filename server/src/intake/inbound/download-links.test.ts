import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { describe, test } from 'node:test'
import { linkKeysOf, makeLink } from '../../core/mail/inbound/link.ts'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { openInbound, someMail } from '../../testing/harness/inbound-harness.ts'
import { submit } from '../../testing/harness/submission-harness.ts'
import { eventually } from '../../testing/harness/waiting.ts'

/** Content that is too large for an event, and its download. */
const database = await testDatabase()
const api = await startApi(database)
const { makeReceiver } = receivers(database, await signedIn(api))
const { open, eventsOf } = await openInbound(api, database)

interface Data {
  text: string
  text_truncated: boolean
  attachments: { size: number; url: string | null; content: string | null }[]
  raw_url: string
}

const mixed = ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b']
const attached = (content: Buffer, type = 'text/html') =>
  [
    '--b',
    `Content-Type: ${type}`,
    'Content-Disposition: attachment; filename="a.html"',
    'Content-Transfer-Encoding: base64',
    '',
    content.toString('base64').replace(/.{76}/g, '$&\r\n'),
  ].join('\r\n')

async function received(raw: string): Promise<Data> {
  const shop = await makeReceiver()
  await shop.route(null, shop.toEndpoint)
  assert.match(await submit(await open(), raw, { to: [shop.at('x')] }), /^250/)
  return (await eventsOf(shop.id))[0]?.data as unknown as Data
}

/** Fetches from the test server instead of the public URL. */
const fetched = (url: string) => fetch(new URL(new URL(url).pathname, api.url))

describe('attachments', () => {
  test('of up to 256 KiB in total are included in the event; larger ones are linked, and browsers do not render them', async () => {
    const half = Buffer.alloc(128 * 1024, 'x')
    const small = await received(
      someMail({ fields: mixed, body: [attached(half), attached(half), '--b--'].join('\r\n') }),
    )
    assert.deepEqual(
      small.attachments.map(({ content, url }) => [content?.length, url]),
      [
        [half.toString('base64').length, null],
        [half.toString('base64').length, null],
      ],
    )
    const page = Buffer.from('<script>alert(1)</script>')
    const body = [attached(half), attached(Buffer.concat([half, page])), '--b--'].join('\r\n')
    const large = await received(someMail({ fields: mixed, body }))
    assert.deepEqual(
      large.attachments.map(({ content, size }) => [content, size]),
      [
        [null, half.length],
        [null, half.length + page.length],
      ],
    )
    const answer = await fetched(large.attachments[1]?.url ?? '')
    assert.equal(answer.status, 200)
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.concat([half, page]))
    assert.equal(answer.headers.get('content-type'), 'application/octet-stream')
    assert.match(answer.headers.get('content-disposition') ?? '', /^attachment;/)
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    assert.match(answer.headers.get('content-security-policy') ?? '', /^sandbox;/)
  })

  test('that were purged or never existed return 404', async () => {
    const data = await received(someMail())
    const keys = linkKeysOf(api.context.config.masterKeys)
    const [row] = await database.query<{ id: string; shard: number }>(
      'select id, shard from mail.inbound_bodies order by id desc limit 1',
    )
    const { id: bodyId, shard } = row ?? assert.fail()
    const at = (token: string) => `http://x/v1/inbound/${token}`
    for (const url of [
      at(makeLink(keys, { shard, bodyId, attachment: 0 }, new Date())),
      at(makeLink(keys, { shard: shard ^ 1, bodyId, attachment: null }, new Date())),
      at(makeLink(keys, { shard, bodyId: bodyId.replace(/.$/, '0'), attachment: null }, new Date(0))),
      data.raw_url.replace(/.{3}$/, 'AAA'),
      at('x'),
      at(`${'x'.repeat(5000)}`),
    ]) {
      const answer = await fetched(url)
      assert.equal(answer.status, 404, url)
      assert.equal(((await answer.json()) as { error: string }).error, 'not_found')
    }
  })
})

describe('a message', () => {
  test('is downloaded unchanged', async () => {
    const raw = someMail({ body: 'caf\xe9 \x01\r\n..\r\n' })
    const { raw_url } = await received(raw)
    const answer = await fetched(raw_url)
    assert.equal(answer.headers.get('content-type'), 'message/rfc822')
    assert.equal(
      Buffer.from(await answer.arrayBuffer()).toString('latin1'),
      `${raw.replace('\r\n..', '\r\n.')}\r\n`,
    )
  })

  test('that the client does not read keeps its slot until the client disconnects', async () => {
    const { raw_url } = await received(someMail({ body: `${'x'.repeat(998)}\r\n`.repeat(20_000) }))
    const url = new URL(new URL(raw_url).pathname, api.url)
    const begin = () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        request(url, { agent: false }, resolve).on('error', reject).end()
      })
    // The previous download may still occupy its slot.
    const begun = () =>
      eventually('a download has begun', async () => {
        const answer = await begin()
        if (answer.statusCode === 200) return answer
        answer.destroy()
        return false
      })
    const idle = [await begun(), await begun()]
    assert.equal((await fetched(raw_url)).status, 503)
    for (const answer of idle) answer.destroy()
    await eventually('their slots are free', async () => {
      const answer = await fetched(raw_url)
      await answer.arrayBuffer()
      return answer.status === 200
    })
  })

  test('of one project, requested from many networks but not read, leaves slots for another project', async () => {
    const behind = await startApi(database, { POSTERN_TRUSTED_PROXIES: '127.0.0.1' })
    const body = `${'x'.repeat(998)}\r\n`.repeat(20_000)
    const [mine, theirs] = [await received(someMail({ body })), await received(someMail())]
    const at = ({ raw_url }: Data) => new URL(new URL(raw_url).pathname, behind.url)
    const from = (network: number) => ({ 'x-forwarded-for': `198.51.100.${network}` })
    let begun = 0
    const idle = Array.from({ length: 12 }, (_, network) =>
      request(at(mine), { agent: false, headers: from(network + 1) }, () => begun++)
        .on('error', () => {})
        .end(),
    )
    await eventually('two are under way', async () => begun === 2)
    const other = await fetch(at(theirs), { headers: from(100) })
    assert.equal(other.status, 200)
    await other.arrayBuffer()
    assert.equal(begun, 2, 'the others of its project wait')
    for (const one of idle) one.destroy()
    const next = await fetch(at(mine), { headers: from(101) })
    assert.equal(next.status, 200, 'a slot is free after they disconnect')
    await next.arrayBuffer()
  })

  test('has its text truncated at 512 KiB, with text_truncated set', async () => {
    const { text, text_truncated } = await received(
      someMail({ body: `${'ö'.repeat(30)}\r\n`.repeat(10_000) }),
    )
    assert.equal(text_truncated, true)
    assert.ok(Buffer.byteLength(text) <= 512 * 1024 && Buffer.byteLength(text) > 511 * 1024)
  })

  test('to many addresses creates at most 8 MiB of events', async () => {
    const shop = await makeReceiver()
    await shop.route(null, shop.toEndpoint)
    const to = Array.from({ length: 50 }, (_, n) => shop.at(`x${n}`))
    const raw = someMail({ body: `${'x'.repeat(76)}\r\n`.repeat(6_000) })
    assert.match(await submit(await open(), raw, { to }), /^250/)
    const events = await eventsOf(shop.id)
    const sizes = events.map(({ data }) => Buffer.byteLength(JSON.stringify(data)))
    assert.equal(events.length, 50)
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= 8 * 1024 * 1024)
    assert.deepEqual([events[0]?.data['text'], events[0]?.data['text_truncated']], [null, true])
  })
})
