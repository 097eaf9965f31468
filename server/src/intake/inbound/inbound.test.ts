import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { receivers } from '../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { openInbound, rcptReplies, someMail } from '../../testing/harness/inbound-harness.ts'
import { submit } from '../../testing/harness/submission-harness.ts'
import { startDns } from '../../testing/peers/dns.ts'

/** Mail for customers' domains, sent over SMTP from unauthenticated clients. */
const dns = await startDns()
const database = await testDatabase()
const api = await startApi(database, { POSTERN_DNS_SERVERS: dns.server })
const admin = await signedIn(api)
const { makeReceiver } = receivers(database, admin)
const { open, inboundOf, eventsOf } = await openInbound(api, database)
const reason = 'Asked for by the customer'

describe('an address', () => {
  test('is matched by its own route before the catch-all, case-insensitively and with a subaddress', async () => {
    const shop = await makeReceiver()
    const own = await shop.route('support', { action: 'drop' })
    const tagged = await shop.route('support+vip', shop.toEndpoint)
    const rest = await shop.route(null, shop.toEndpoint)
    const client = await open()
    const to = ['Support', 'SUPPORT+news', 'support+VIP', 'other', 'other+tag'].map(shop.at)
    assert.match(await submit(client, someMail(), { from: 'ada@example.com', to }), /^250 2\.0\.0/)
    const rows = await inboundOf(shop.id)
    assert.deepEqual(
      Object.fromEntries(rows.map(({ recipient, route_id }) => [recipient.split('@')[0], route_id])),
      {
        Support: own.id,
        'SUPPORT+news': own.id,
        'support+VIP': tagged.id,
        other: rest.id,
        'other+tag': rest.id,
      },
    )
  })

  test('is rejected at RCPT if it is unknown or its route rejects mail', async () => {
    const shop = await makeReceiver()
    await shop.route('nobody', { action: 'reject' })
    await shop.route('off', { action: 'drop', is_active: false })
    const replies = await rcptReplies(await open(), [
      shop.at('unknown'),
      'someone@elsewhere.example',
      shop.at('off'),
      shop.at('nobody'),
      `someone@sub.${shop.domain.name}`,
    ])
    assert.deepEqual(
      replies.map((reply) => reply.slice(0, 9)),
      ['550 5.1.1', '550 5.1.1', '550 5.1.1', '550 5.7.1', '550 5.1.1'],
    )
  })

  test('in a locked project or with an inactive endpoint is deferred', async () => {
    const shop = await makeReceiver()
    await shop.route(null, shop.toEndpoint)
    const reply = async () => (await rcptReplies(await open(), [shop.at('x')]))[0]?.slice(0, 9)
    assert.equal(await reply(), '250 2.1.5')
    await admin.patch(shop.path, { is_locked: true, reason })
    assert.equal(await reply(), '450 4.3.0')
    await admin.patch(shop.path, { is_locked: false, reason })
    const { name, url, events } = shop.endpoint
    const off = await admin.patch(`${shop.path}/endpoints/${shop.endpoint.id}`, {
      ...{ name, url, events, is_active: false },
    })
    assert.equal(off.status, 200, off.text)
    assert.equal(await reply(), '450 4.3.0')
  })

  test('follows a renamed domain when the change is committed', async () => {
    const shop = await makeReceiver()
    await shop.route('support', shop.toEndpoint)
    const client = await open()
    const old = shop.at('support')
    const next = `support@new-${shop.domain.name}`
    const codes = async () => (await rcptReplies(client, [old, next])).map((reply) => reply.slice(0, 3))
    assert.deepEqual(await codes(), ['250', '550'])
    const edit = await admin.patch(`${shop.path}/domains/${shop.domain.id}`, {
      ...{ name: `new-${shop.domain.name}`, preserve_local_parts: true, reason },
    })
    assert.equal(edit.status, 200, edit.text)
    assert.deepEqual(await codes(), ['550', '250'], 'in the same connection, before DNS shows the records')
  })

  test('is deferred if its route changes between RCPT and the end of the data', async () => {
    const shop = await makeReceiver()
    const route = await shop.route('support', shop.toEndpoint)
    const client = await open()
    await client.begin(shop.at('support'))
    assert.equal((await admin.delete(`${shop.path}/routing/${route.id}`, { reason })).status, 204)
    client.write(`${someMail()}\r\n.\r\n`)
    assert.match((await client.reply()) ?? '', /^451 4\.3\.0/)
    assert.deepEqual(await inboundOf(shop.id), [])
  })

  test('under a name that several projects claim is deferred until one project has verified the name', async () => {
    const name = 'contested.example.org'
    const first = await makeReceiver({ name, status: 'pending' })
    await first.route(null, { action: 'drop' })
    const reply = async () => (await rcptReplies(await open(), [`x@${name}`]))[0]?.slice(0, 9)
    assert.equal(await reply(), '250 2.1.5', 'the only claim')
    const second = await makeReceiver({ name, status: 'pending' })
    await second.route(null, { action: 'reject' })
    assert.equal(await reply(), '450 4.3.0')
    await database.query(`update control.domains set status = 'verified' where id = $1`, [second.domain.id])
    assert.equal(await reply(), '550 5.7.1')
    await database.query(`update control.domains set status = 'pending' where id = $1`, [second.domain.id])
    for (const { id } of (await admin.get(`${second.path}/routing`)).body.data) {
      await admin.delete(`${second.path}/routing/${id}`, { reason })
    }
    const gone = await admin.delete(`${second.path}/domains/${second.domain.id}`, { reason })
    assert.equal(gone.status, 204, gone.text)
    assert.equal(await reply(), '450 4.3.0', 'the MX of the previous holder may still point here')
  })

  test('under a subdomain of a name that another project has verified is deferred until the subdomain is verified', async () => {
    const parent = await makeReceiver()
    const name = `deep.sub.${parent.domain.name}`
    const squatter = await makeReceiver({ name, status: 'pending' })
    await squatter.route(null, { action: 'drop' })
    const reply = async (at: string) => (await rcptReplies(await open(), [`x@${at}`]))[0]?.slice(0, 9)
    assert.equal(await reply(name), '450 4.3.0')
    await database.query(`update control.domains set status = 'verified' where id = $1`, [squatter.domain.id])
    assert.equal(await reply(name), '250 2.1.5')
    await database.query(`update control.domains set status = 'pending' where id = $1`, [parent.domain.id])
    await database.query(`update control.domains set status = 'pending' where id = $1`, [squatter.domain.id])
    assert.equal(await reply(name), '250 2.1.5', 'neither is verified')
  })

  test('in another project requires a separate transaction', async () => {
    const [one, other] = [await makeReceiver(), await makeReceiver()]
    await one.route(null, { action: 'drop' })
    await other.route(null, { action: 'drop' })
    const client = await open()
    const codes = (await rcptReplies(client, [one.at('a'), other.at('a'), one.at('b')])).map((reply) =>
      reply.slice(0, 9),
    )
    assert.deepEqual(codes, ['250 2.1.5', '452 4.5.3', '250 2.1.5'])
    assert.deepEqual(
      (await rcptReplies(client, [other.at('a')])).map((reply) => reply.slice(0, 3)),
      ['250'],
    )
  })
})

describe('a message', () => {
  test('to an endpoint becomes an event with the complete content', async () => {
    const shop = await makeReceiver()
    await shop.route('support', shop.toEndpoint)
    const raw = [
      'From: =?utf-8?q?Ada_L=C3=B6we?= <ada@example.com>',
      `To: Support <${shop.at('support')}>, Bo <bo@example.net>`,
      'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
      'Date: Sat, 14 Nov 2026 09:30:00 +0000',
      'Message-ID: <1@example.com>',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: multipart/alternative; boundary=c',
      '',
      '--c',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'Hello',
      '--c',
      'Content-Type: text/html',
      '',
      '<p>Hello</p>',
      '--c--',
      '--b',
      'Content-Type: application/pdf; name="bill.pdf"',
      'Content-Disposition: attachment; filename="bill.pdf"',
      'Content-Transfer-Encoding: base64',
      'Content-ID: <bill@example.com>',
      '',
      Buffer.from('not really').toString('base64'),
      '--b--',
    ].join('\r\n')
    const reply = await submit(await open(), raw, { from: 'ada@example.com', to: [shop.at('support')] })
    const [, id] = /^250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})$/.exec(reply) ?? []
    const [row = assert.fail()] = await inboundOf(shop.id)
    assert.equal(row.id, id)
    assert.deepEqual(
      [row.action, row.envelope_from, row.from_header, row.subject, row.remote_address],
      ['endpoint', 'ada@example.com', 'Ada Löwe <ada@example.com>', 'Grüße', '127.0.0.1'],
    )
    const [event = assert.fail(), ...more] = await eventsOf(shop.id)
    assert.deepEqual(more, [])
    assert.deepEqual(event.endpoints, [shop.endpoint.id])
    const { headers, authentication, raw_url, ...data } = event.data
    assert.deepEqual(data, {
      inbound_id: id,
      is_parsed: true,
      from: { name: 'Ada Löwe', address: 'ada@example.com' },
      to: [
        { name: 'Support', address: shop.at('support') },
        { name: 'Bo', address: 'bo@example.net' },
      ],
      envelope: { from: 'ada@example.com', to: shop.at('support') },
      subject: 'Grüße',
      date: '2026-11-14T09:30:00.000Z',
      message_id: '<1@example.com>',
      text: 'Hello\n',
      text_truncated: false,
      html: '<p>Hello</p>\n',
      html_truncated: false,
      attachments: [
        {
          filename: 'bill.pdf',
          content_type: 'application/pdf',
          content_id: 'bill@example.com',
          size: 10,
          content: Buffer.from('not really').toString('base64'),
          url: null,
        },
      ],
    })
    assert.deepEqual((headers as object[])[4], { name: 'Message-ID', value: '<1@example.com>' })
    assert.deepEqual(authentication, row.authentication)
    assert.match(String(raw_url), /^http:\/\/localhost:8080\/v1\/inbound\/[\w-]{54}$/)
  })

  test('to several addresses has one row per address and one body', async () => {
    const shop = await makeReceiver()
    await shop.route(null, shop.toEndpoint)
    await shop.route('void', { action: 'drop' })
    const to = ['a', 'b', 'a', 'void'].map(shop.at)
    assert.match(await submit(await open(), someMail(), { to }), /^250/)
    const rows = await inboundOf(shop.id)
    assert.deepEqual(
      rows.map(({ recipient, action, body_id }) => [recipient.split('@')[0], action, body_id !== null]),
      [
        ['a', 'endpoint', true],
        ['b', 'endpoint', true],
        ['void', 'drop', false],
      ],
    )
    assert.equal(new Set(rows.map(({ body_id }) => body_id)).size, 2)
    assert.deepEqual(
      (await eventsOf(shop.id)).map(({ data }) => (data['envelope'] as { to: string }).to.split('@')[0]),
      ['a', 'b'],
    )
  })

  test('that is dropped is recorded and not delivered', async () => {
    const shop = await makeReceiver()
    await shop.route(null, { action: 'drop' })
    assert.match(await submit(await open(), someMail(), { to: [shop.at('x')] }), /^250/)
    assert.deepEqual(
      (await inboundOf(shop.id)).map(({ action }) => action),
      ['drop'],
    )
    assert.deepEqual(await eventsOf(shop.id), [])
  })

  test('in a routing loop, with a NUL or with an oversized header is permanently rejected', async () => {
    const shop = await makeReceiver()
    await shop.route(null, { action: 'drop' })
    const received = (count: number) =>
      Array.from(
        { length: count },
        (_, n) => `Received: from a${n}.example by b.example; Sat, 14 Nov 2026 09:30:00 +0000`,
      )
    const client = await open()
    const reply = async (raw: string) => (await submit(client, raw, { to: [shop.at('x')] })).slice(0, 9)
    assert.equal(await reply(someMail({ fields: received(30) })), '250 2.0.0')
    assert.equal(await reply(someMail({ fields: received(31) })), '554 5.4.6')
    const marked = (address: string) => someMail({ fields: [`X-Postern-Forwarded: ${address}`] })
    assert.equal(await reply(marked(shop.at('X'))), '554 5.4.6')
    assert.equal(await reply(marked(shop.at('y'))), '250 2.0.0')
    assert.equal(await reply(someMail({ body: 'a\0b' })), '554 5.6.0')
    assert.equal(await reply(`X: ${'y'.repeat(300 * 1024)}\r\n\r\n`), '552 5.3.4')
    assert.equal(await reply(someMail({ fields: [`X: y${' '.repeat(998)}y`] })), '250 2.0.0')
    assert.equal(await reply(someMail({ fields: [`X: y${' '.repeat(999)}y`] })), '552 5.3.4')
  })

  test('that cannot be parsed is delivered to the endpoint as a link', async () => {
    const shop = await makeReceiver()
    await shop.route(null, shop.toEndpoint)
    const levels = Array.from(
      { length: 100 },
      (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary="b${n + 1}"\r\n\r\n`,
    )
    const raw = someMail({
      fields: ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary="b0"'],
      body: levels.join(''),
    })
    assert.match(await submit(await open(), raw, { to: [shop.at('x')] }), /^250/)
    const [event = assert.fail()] = await eventsOf(shop.id)
    assert.equal(event.data['is_parsed'], false)
    assert.match(String(event.data['raw_url']), /\/v1\/inbound\//)
  })

  test('of 25 MiB is accepted, and one with an additional octet is rejected', async () => {
    const shop = await makeReceiver()
    await shop.route(null, { action: 'drop' })
    const client = await open()
    const line = `${'x'.repeat(998)}\r\n`
    const most = 25 * 1024 * 1024
    const ofSize = (size: number) => {
      const head = 'From: a@example.com\r\n\r\n'
      const lines = line.repeat(Math.floor((size - head.length) / line.length))
      return head + lines + 'y'.repeat(size - head.length - lines.length)
    }
    // `submit` adds the last CRLF.
    assert.match(await submit(client, ofSize(most - 2), { to: [shop.at('x')] }), /^250/)
    assert.match(await submit(client, ofSize(most - 1), { to: [shop.at('x')] }), /^552 5\.3\.4/)
  })
})

describe('an inbound client', () => {
  test('is authenticated by SPF, DKIM, DMARC and ARC, and accepted regardless of the result', async () => {
    const shop = await makeReceiver()
    await shop.route(null, shop.toEndpoint)
    await dns.setZone('.', [
      { name: 'sender.example', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
      { name: '_dmarc.sender.example', type: 'TXT', value: 'v=DMARC1; p=reject' },
      { name: 'forged.example', type: 'TXT', value: 'v=spf1 -all' },
      { name: '_dmarc.forged.example', type: 'TXT', value: 'v=DMARC1; p=reject' },
    ])
    const brought = async (domain: string) => {
      const raw = someMail().replace('ada@example.com', `ada@${domain}`)
      assert.match(await submit(await open(), raw, { from: `ada@${domain}`, to: [shop.at('x')] }), /^250/)
      const [{ data } = assert.fail()] = (await eventsOf(shop.id)).slice(-1)
      return data['authentication']
    }
    const none = { dkim: [], arc: { result: 'none' } }
    assert.deepEqual(await brought('sender.example'), {
      spf: { result: 'pass', domain: 'sender.example' },
      dmarc: { result: 'pass', domain: 'sender.example', policy: 'reject' },
      ...none,
    })
    assert.deepEqual(await brought('forged.example'), {
      spf: { result: 'fail', domain: 'forged.example' },
      dmarc: { result: 'fail', domain: 'forged.example', policy: 'reject' },
      ...none,
    })
    await dns.setZone('.', [])
    await dns.breakZone('.')
    const broken = (await brought('sender.example')) as { spf: { result: string } }
    assert.equal(broken.spf.result, 'temperror')
    await dns.setZone('.', [])
  })

  test('that sends too often or opens too many connections is deferred', async () => {
    const shop = await makeReceiver()
    await shop.route(null, { action: 'drop' })
    const narrow = await openInbound(api, database, {
      limits: { mailsPerMinute: 3, clientsPerNetwork: 2, unknownPerMinute: 2 },
    })
    const client = await narrow.open()
    const replies: string[] = []
    for (let n = 0; n < 4; n++) replies.push(await submit(client, someMail(), { to: [shop.at('x')] }))
    assert.deepEqual(
      replies.map((reply) => reply.slice(0, 9)),
      ['250 2.0.0', '250 2.0.0', '250 2.0.0', '451 4.7.1'],
    )
    const second = await narrow.open()
    assert.match((await second.say('NOOP')) ?? '', /^250/)
    await assert.rejects(async () => {
      const third = await narrow.open()
      assert.match((await third.say('NOOP')) ?? '', /^250/)
    })
  })

  test('that guesses addresses is disconnected', async () => {
    const shop = await makeReceiver()
    const narrow = await openInbound(api, database, { limits: { unknownPerMinute: 2 } })
    const client = await narrow.open()
    await client.say('MAIL FROM:<>')
    const replies: (string | undefined)[] = []
    for (const local of ['a', 'b', 'c']) replies.push(await client.say(`RCPT TO:<${shop.at(local)}>`))
    assert.deepEqual(
      replies.map((reply) => reply?.slice(0, 9)),
      ['550 5.1.1', '550 5.1.1', '421 4.7.0'],
    )
  })

  test('is offered STARTTLS but not AUTH', async () => {
    const client = await open()
    const offered = (await client.say('EHLO client.example')) ?? ''
    assert.match(offered, /STARTTLS/)
    assert.doesNotMatch(offered, /AUTH|CHUNKING/)
    assert.match((await client.say('STARTTLS')) ?? '', /^220/)
    await client.startTls()
    const inside = (await client.say('EHLO client.example')) ?? ''
    assert.doesNotMatch(inside, /AUTH|STARTTLS/)
    assert.match((await client.say('AUTH PLAIN AGEAYg==')) ?? '', /^5/)
  })
})
