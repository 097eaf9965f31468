import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import nodemailer from 'nodemailer'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { idIn, openSubmission, plainOf, someText, submit } from '../../testing/harness/submission-harness.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { SmtpClient } from '../../testing/peers/smtp-client.ts'

/** Mail that customers submit over SMTP. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makeApiKey, makeDomain } = senders(api, database, admin)
const { startTls, tls, open } = await openSubmission(api)

const stored = (id: string) =>
  database.query<{ format: string; content: Buffer }>(
    'select format, content from mail.bodies where message_id = $1',
    [id],
  )

const messagesOf = async (projectId: number): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    'select count(*)::integer as count from mail.messages where project_id = $1',
    [projectId],
  )
  return row?.count ?? 0
}

describe('a message', () => {
  test('is accepted on both ports, with AUTH PLAIN and LOGIN, and returned by the API like any other message', async () => {
    const sender = await makeSender()
    for (const [port, secure, method] of [
      [startTls.port, false, 'PLAIN'],
      [startTls.port, false, 'LOGIN'],
      [tls.port, true, 'PLAIN'],
      [tls.port, true, 'LOGIN'],
    ] as const) {
      const transport = nodemailer.createTransport({
        ...{ host: '127.0.0.1', port, secure, requireTLS: !secure, authMethod: method },
        ...{ auth: { user: 'postern', pass: sender.secret }, tls: { rejectUnauthorized: false } },
      })
      const { response } = await transport.sendMail({
        from: `Shop <orders@${sender.domain.name}>`,
        to: 'Anna <anna@example.net>',
        cc: 'bob@example.net',
        bcc: 'eve@example.net',
        subject: 'Grüße',
        text: 'Hello',
        headers: { 'X-Postern-Tag': 'order, welcome', 'X-Postern-Metadata': 'order=4711' },
      })
      const id = idIn(response)
      const { body } = await sender.program.get(`/messages/${id}`)
      assert.equal(body.from, `orders@${sender.domain.name}`)
      assert.equal(body.subject, 'Grüße')
      assert.deepEqual(
        body.recipients.map(({ address, kind, status }: Record<string, string>) => [address, kind, status]),
        [
          ['anna@example.net', 'to', 'queued'],
          ['bob@example.net', 'cc', 'queued'],
          ['eve@example.net', 'bcc', 'queued'],
        ],
      )
      assert.deepEqual([body.tags, body.metadata], [['order', 'welcome'], { order: '4711' }])
      assert.deepEqual([body.api_key_id, body.user_id, body.is_test], [sender.keyId, null, false])
      const [row] = await stored(id)
      assert.equal(row?.format, 'mime')
      assert.equal(row?.content.length, body.size_bytes)
      assert.doesNotMatch(row?.content.toString() ?? '', /eve@|X-Postern/)
      const { body: events } = await sender.program.get(`/messages/${id}/events`)
      assert.deepEqual(
        events.data.map(({ type }: { type: string }) => type),
        ['message.accepted'],
      )
    }
  })

  test('is sent once to each envelope recipient, regardless of its header', async () => {
    const sender = await makeSender()
    const client = await open(sender.secret)
    const to = ['Anna@example.net', 'other@xn--bcher-kva.example', 'anna@EXAMPLE.net']
    const id = idIn(await submit(client, someText(sender.domain.name), { from: 'x@elsewhere.example', to }))
    const { body } = await sender.program.get(`/messages/${id}`)
    assert.deepEqual(
      body.recipients.map(({ address, kind }: Record<string, string>) => `${kind} ${address}`).sort(),
      ['bcc other@xn--bcher-kva.example', 'to anna@example.net'],
    )
  })

  test('is created for each transaction in a session', async () => {
    const sender = await makeSender()
    const client = await open(sender.secret)
    const ids = []
    for (let n = 0; n < 5; n++) ids.push(idIn(await submit(client, someText(sender.domain.name))))
    assert.equal(new Set(ids).size, 5)
    assert.match((await client.say('QUIT')) ?? '', /^221 2\.0\.0/)
  })

  test('can have non-ASCII recipients if the client declares SMTPUTF8', async () => {
    const sender = await makeSender()
    const client = await open(sender.secret)
    const raw = Buffer.from(someText(sender.domain.name, { fields: ['Cc: jörg@bücher.example'] }))
    const to = Buffer.from('jörg@bücher.example').toString('latin1')
    assert.match(await submit(client, raw, { to: [to] }), /^553 5\.6\.7/)
    await client.say('RSET')
    assert.match(await submit(client, raw), /^554 5\.6\.0 The header is not ASCII/)
    const id = idIn(await submit(client, raw, { to: [to], parameters: 'SMTPUTF8 BODY=8BITMIME' }))
    const { body } = await sender.program.get(`/messages/${id}`)
    assert.deepEqual(
      [body.recipients[0].address, body.recipients[0].kind],
      ['jörg@xn--bcher-kva.example', 'cc'],
    )
  })

  test('submitted with a test key is a test message and updates when the key was last used', async () => {
    const sender = await makeSender()
    const { secret, resource } = await makeApiKey(sender.id, { mode: 'test', allowed_ips: [] })
    const client = await open(secret)
    const id = idIn(await submit(client, someText(sender.domain.name)))
    assert.equal((await sender.program.get(`/messages/${id}`)).body.is_test, true)
    await eventually('the last use is recorded', async () => {
      const { body } = await admin.get(`/projects/${sender.id}/api-keys/${resource.id}`)
      return body.last_used_at !== null
    })
  })
})

describe('before TLS', () => {
  test('AUTH is not offered, and other commands are rejected', async () => {
    const sender = await makeSender()
    const client = await SmtpClient.open(startTls.port)
    const offered = (await client.say('EHLO client.example')) ?? ''
    assert.match(offered, /STARTTLS/)
    assert.doesNotMatch(offered, /AUTH|CHUNKING|DSN|XCLIENT/)
    assert.match((await client.say(plainOf(sender.secret))) ?? '', /^5/)
    assert.match((await client.say('MAIL FROM:<>')) ?? '', /^530 5\.7\.0 Must issue a STARTTLS/)
    assert.match((await client.say('STARTTLS')) ?? '', /^220/)
    await client.startTls()
    const now = (await client.say('EHLO client.example')) ?? ''
    for (const extension of [
      'AUTH PLAIN LOGIN',
      'SIZE 26214400',
      '8BITMIME',
      'SMTPUTF8',
      'ENHANCEDSTATUSCODES',
    ]) {
      assert.match(now, new RegExp(extension))
    }
    assert.doesNotMatch(now, /STARTTLS|CHUNKING|DSN/)
    assert.match((await client.say('MAIL FROM:<>')) ?? '', /^530 5\.7\.0/)
    assert.match((await client.say(plainOf(sender.secret))) ?? '', /^235/)
    idIn(await submit(client, someText(sender.domain.name)))
  })

  test('earlier commands have no effect, and pipelined input is discarded', async () => {
    const client = await SmtpClient.open(startTls.port)
    await client.say('EHLO client.example')
    client.write('STARTTLS\r\nEHLO injected.example\r\nMAIL FROM:<>\r\n')
    assert.match((await client.reply()) ?? '', /^220/)
    await client.startTls()
    assert.match((await client.say('MAIL FROM:<>')) ?? '', /^503/)
  })
})

describe('a key', () => {
  const replyTo = async (secret: string): Promise<string> => {
    const client = await open()
    return (await client.say(plainOf(secret))) ?? 'gone'
  }

  test('that is invalid for any reason gets the same reply', async () => {
    const { open: openQuiet } = await openSubmission(api)
    const sender = await makeSender()
    const own = { allowed_ips: [] }
    const { secret: rotated, resource } = await makeApiKey(sender.id, own)
    await admin.post(`/projects/${sender.id}/api-keys/${resource.id}/rotate`, { reason: 'Lost' })
    const wrong: Record<string, string> = {
      'no key': 'secret',
      empty: '',
      unknown: `${sender.secret.slice(0, -8)}00000000`,
      rotated,
      inactive: (await makeApiKey(sender.id, { ...own, is_active: false })).secret,
      'without the scope': (await makeApiKey(sender.id, { ...own, scopes: ['messages:read'] })).secret,
      'from another address': (await makeApiKey(sender.id, { allowed_ips: ['192.0.2.1'] })).secret,
    }
    const replies = new Set<string>()
    for (const secret of Object.values(wrong)) {
      const client = await openQuiet()
      replies.add((await client.say(plainOf(secret))) ?? 'gone')
      assert.match((await client.say('MAIL FROM:<>')) ?? '', /^530/)
      client.close()
    }
    assert.equal(replies.size, 1, [...replies].join('\n'))
    assert.match([...replies][0] ?? '', /^535 5\.7\.8/)
    assert.doesNotMatch(api.logLines.join(''), new RegExp(rotated))
  })

  test('that fails too often blocks its network, even with valid keys', async () => {
    const sender = await makeSender()
    const { open: openStrict } = await openSubmission(api, { limits: { failedAuthPerMinute: 3 } })
    for (let n = 0; n < 3; n++) {
      const client = await openStrict()
      assert.match((await client.say(plainOf('wrong'))) ?? '', /^535/)
      client.close()
    }
    const client = await openStrict()
    assert.match(
      (await client.say(plainOf(sender.secret))) ?? '',
      /^421 4\.7\.0 Too many authentication failures/,
    )
  })

  test('that is revoked during a session can no longer send', async () => {
    const sender = await makeSender()
    for (const change of [
      { is_active: false },
      { scopes: ['messages:read'] },
      { allowed_ips: ['192.0.2.1'] },
    ]) {
      const { resource, secret } = await makeApiKey(sender.id, { allowed_ips: [] })
      const client = await open(secret)
      idIn(await submit(client, someText(sender.domain.name)))
      const before = await messagesOf(sender.id)
      const { name, scopes, domain_id, allowed_ips, expires_at, is_active } = resource
      const edited = await admin.patch(`/projects/${sender.id}/api-keys/${resource.id}`, {
        ...{ name, scopes, domain_id, allowed_ips, expires_at, is_active, ...change },
        reason: 'Ended',
      })
      assert.equal(edited.status, 200, edited.text)
      assert.match(await submit(client, someText(sender.domain.name)), /^421 4\.7\.0/, JSON.stringify(change))
      assert.equal(await client.say('NOOP'), undefined, 'the connection was closed')
      assert.equal(await messagesOf(sender.id), before)
      assert.match(await replyTo(secret), /^535/)
    }
  })

  test('that expires during a session can no longer send', async () => {
    const sender = await makeSender()
    const client = await open(sender.secret)
    idIn(await submit(client, someText(sender.domain.name)))
    await database.query(`update control.api_keys set expires_at = postern.now() where id = $1`, [
      sender.keyId,
    ])
    assert.match(await submit(client, someText(sender.domain.name)), /^421 4\.7\.0/)
    assert.equal(await messagesOf(sender.id), 1)
  })

  test('shares its rate limit with the API', async () => {
    const few = await startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY: '3' })
    const { open: openFew } = await openSubmission(few)
    const sender = await senders(few, database, await signedIn(few)).makeSender()
    const client = await openFew(sender.secret)
    await sender.send()
    for (let n = 0; n < 2; n++) idIn(await submit(client, someText(sender.domain.name)))
    assert.match(
      await submit(client, someText(sender.domain.name)),
      /^451 4\.7\.1 Too many requests from this API key/,
    )
    assert.equal((await sender.program.get('/messages')).status, 429)
  })
})

describe('SMTP rejects the same mail as the API, in the same order', () => {
  test('locked, subscription, domain, provider, validation, quota', async () => {
    const sender = await makeSender()
    const client = await open(sender.secret)
    const { name } = sender.domain
    const other = await makeDomain(sender.id, { mta_provider: 'service' })
    const plan = (changes: object) => database.query(...planOf(sender.id, changes))
    // Each step fixes one cause; the others remain.
    const steps: [string, RegExp, () => Promise<unknown>][] = [
      [
        'project_locked',
        /^550 5\.7\.1 This project is locked/,
        () => admin.patch(sender.path, { is_locked: false, reason: 'x' }),
      ],
      [
        'subscription_inactive',
        /^550 5\.7\.1 .* subscription/,
        () => admin.patch(sender.path, { admin_subscription_status: null, reason: 'x' }),
      ],
      [
        'domain_not_verified',
        /^550 5\.7\.1 .* not verified/,
        async () => {
          from = name
        },
      ],
      [
        'provider_not_allowed',
        /^550 5\.7\.1 .*allow_service_mta/,
        () => admin.patch(sender.path, { allow_service_mta: true, reason: 'x' }),
      ],
      [
        'validation_failed',
        /^554 5\.6\.0 The message has more than one subject/,
        async () => {
          fields = []
        },
      ],
      [
        'quota_exceeded',
        /^452 4\.7\.1 The plan allows 0 messages per day/,
        () => plan({ max_mails_per_day: 10 }),
      ],
    ]
    let from = other.name
    let fields = ['Subject: two']
    await admin.patch(sender.path, {
      ...{ is_locked: true, admin_subscription_status: 'canceled', allow_service_mta: false, reason: 'x' },
    })
    await plan({ max_mails_per_day: 0 })
    for (const [code, words, mend] of steps) {
      assert.match(await submit(client, someText(from, { fields })), words)
      const answer = await sender.program.post('/messages', {
        ...{ from: `a@${from}`, to: fields.length > 0 ? [] : ['anna@example.net'], subject: 'x', text: 'x' },
      })
      assert.equal(answer.body.error, code)
      assert.equal(await messagesOf(sender.id), 0)
      await mend()
    }
    idIn(await submit(client, someText(from, { fields })))
  })

  test("another project's domain, or a domain that is not the key's", async () => {
    const [sender, stranger] = [await makeSender(), await makeSender()]
    const client = await open(sender.secret)
    assert.match(
      await submit(client, someText(stranger.domain.name)),
      /^550 5\.7\.1 .*not a domain of this project/,
    )
    const second = await makeDomain(sender.id, { mta_provider: 'service', status: 'verified' })
    const { secret } = await makeApiKey(sender.id, { allowed_ips: [], domain_id: second.id })
    const bound = await open(secret)
    assert.match(await submit(bound, someText(sender.domain.name)), /^550 5\.7\.1 .*restricted to one domain/)
    idIn(await submit(bound, someText(second.name)))
  })

  test('suppressed recipients are omitted, with an event', async () => {
    const sender = await makeSender()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'anna@example.net', 'manual')`,
      [sender.id],
    )
    const client = await open(sender.secret)
    const to = ['Anna@example.net', 'bob@example.net']
    const id = idIn(await submit(client, someText(sender.domain.name), { to }))
    const { body } = await sender.program.get(`/messages/${id}`)
    assert.deepEqual(
      body.recipients.map(({ status }: { status: string }) => status),
      ['suppressed', 'queued'],
    )
  })
})

const planOf = (projectId: number, changes: object): [string, unknown[]] => {
  const [[column, value] = []] = Object.entries(changes)
  return [
    `update control.plans set ${column} = $2 where id = (select plan_id from control.projects where id = $1)`,
    [projectId, value],
  ]
}
