import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createDecipheriv, createPrivateKey, randomBytes } from 'node:crypto'
import { globSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { CookieJar } from '../server/src/testing/harness/cookie-jar.ts'
import { totpCode } from '../server/src/testing/harness/totp.ts'
import { patienceMs } from '../server/src/testing/harness/waiting.ts'
import { SmtpClient } from '../server/src/testing/peers/smtp-client.ts'
import { startCollector } from '../server/src/testing/peers/trace-collector.ts'
import { startReceiver } from '../server/src/testing/peers/webhook-receiver.ts'
import { type Canary, Search } from './canaries.ts'
import { body, openStage } from './stage.ts'

/**
 * Uses every kind of secret, correctly and incorrectly, in processes that log as much as possible. Then searches for
 * the secrets in every place that people other than their holders can access: a database dump, the logs, the audit
 * export, metrics, traces, error responses and command output. No secret may be found. Each channel is also searched
 * for a control value that must be found, to prove that the search works.
 */
const secretOf = (name: string): string => `${name}${randomBytes(30).toString('base64url')}`
const master = randomBytes(32)
const own = {
  authSecret: secretOf('auth'),
  databasePassword: secretOf('db'),
  mtaPassword: secretOf('mta'),
  awsSecret: secretOf('aws'),
  kumomtaToken: secretOf('kumomta'),
}
const receiver = await startReceiver()
const collector = await startCollector()
const stage = await openStage({
  settings: (usual) => {
    const database = new URL(usual['POSTERN_DATABASE_URL'] ?? '')
    database.password = own.databasePassword
    const mta = usual['POSTERN_MTA_HOSTS'] ?? ''
    return {
      ...receiver.settings,
      POSTERN_LOG_LEVEL: 'trace',
      POSTERN_METRICS_PORT: '0',
      POSTERN_OTLP_ENDPOINT: collector.url,
      POSTERN_DATABASE_URL: database.href,
      POSTERN_AUTH_SECRETS: `1:${own.authSecret}`,
      POSTERN_MASTER_KEYS: `1:${master.toString('hex')}`,
      // The second host does not offer TLS, so it is never sent the password; mail is sent through the first host.
      POSTERN_MTA_HOSTS: `${mta}, ${mta.replace('smtp://', `smtp://postern:${own.mtaPassword}@`)}`,
      POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.example.net',
      POSTERN_KUMOMTA_TOKENS: own.kumomtaToken,
      AWS_SECRET_ACCESS_KEY: own.awsSecret,
    }
  },
})
const project = `/admin/projects/${stage.project.id}`
const origin = 'http://localhost:8080'
const reason = 'A reason that the audit records'

const canaries: Canary[] = [
  { name: 'master key', text: master.toString('hex'), bytes: master },
  { name: 'auth secret', text: own.authSecret },
  { name: 'database password', text: own.databasePassword },
  { name: 'MTA password', text: own.mtaPassword },
  { name: 'AWS secret', text: own.awsSecret },
  { name: 'KumoMTA token', text: own.kumomtaToken },
  { name: 'API key', text: stage.secret.replace(/^pk_live_/, '') },
]
/** The output of commands that print no secrets. */
const printed: string[] = []
const failures: string[] = []
/** Links to inbound mail. They are stored only in their events, in the same database as the mail. */
const links: Canary[] = []

describe('secrets', () => {
  it('are used: sign-in', async () => {
    const email = 'canary@postern.example.net'
    const shown = await stage.postern('admin', 'create', '--email', email)
    const [, password = ''] = /password +(\S+)/.exec(shown) ?? []
    const [, totpUri = ''] = /(otpauth:\S+)/.exec(shown) ?? []
    const [, codes = ''] = /backup codes +(.+)/.exec(shown) ?? []
    assert.ok(password !== '' && totpUri !== '' && codes !== '')
    const browser = new CookieJar(stage.apiUrl, { origin })
    await browser.post('/v1/auth/sign-in', { email, password: `${password}x` })
    assert.equal((await browser.post('/v1/auth/sign-in', { email, password })).status, 200)
    const code = totpCode(totpUri)
    const signedIn = await browser.post('/v1/auth/totp/code', { code })
    assert.equal(signedIn.status, 204)
    const cookie = decodeURIComponent(
      /=([^;]+)/.exec(
        signedIn.headers.getSetCookie().find((line) => line.includes('session_token')) ?? '',
      )?.[1] ?? '',
    )
    const { token: issued } = (await (await browser.post('/v1/auth/token')).json()) as { token: string }
    const jwt = (await stage.postern('token', '--email', email)).trim()
    const seed = new URL(totpUri).searchParams.get('secret') ?? ''
    assert.ok(cookie.includes('.') && issued.split('.').length === 3 && seed.length >= 16)
    canaries.push(
      { name: 'password', text: password },
      { name: 'TOTP seed', text: seed, bytes: base32(seed) },
      ...codes.split(' ').map((text, no) => ({ name: `backup code ${no}`, text })),
      // The cookie is valid only with its signature: the token before the dot identifies the session and grants no
      // access.
      { name: 'session cookie', text: cookie.slice(cookie.lastIndexOf('.') + 1) },
      { name: 'access token', text: issued.split('.')[2] ?? '' },
      { name: 'token of the shell', text: jwt.split('.')[2] ?? '' },
    )
    const token = cookie.slice(0, cookie.lastIndexOf('.'))
    for (const forged of [token, `${token}.${Buffer.alloc(32, 1).toString('base64')}`]) {
      const answer = await fetch(`${stage.apiUrl}/v1/auth/token`, {
        method: 'POST',
        headers: { origin, cookie: `postern.session_token=${encodeURIComponent(forged)}` },
      })
      assert.equal(answer.status, 401, 'the session token without its signature grants no access')
    }
  })

  it('are used: keys, endpoints, invitations and mail', async () => {
    const made = await body<{ resource: { id: number }; secret: string }>(
      201,
      stage.admin.post(`${project}/endpoints`, {
        ...{ name: 'Events', url: `${receiver.url}/events`, is_active: true, reason },
        events: ['message.sent', 'message.delivered'],
      }),
    )
    const rotated = await body<{ secret: string }>(
      200,
      stage.admin.post(`${project}/endpoints/${made.resource.id}/rotate`, { reason }),
    )
    for (const [name, { secret }] of Object.entries({ 'endpoint secret': made, 'rotated secret': rotated })) {
      const text = secret.replace(/^whsec_/, '')
      canaries.push({ name, text, bytes: Buffer.from(text, 'base64') })
    }
    await body(
      201,
      stage.admin.post(`${project}/members`, { email: 'guest@example.net', role: 'viewer', reason }),
    )
    const invitation = await stage.sink.next(({ to }) => to[0] === 'guest@example.net')
    const raw = invitation.raw.toString().replaceAll('=\r\n', '')
    const [, token = ''] = /(inv_[\w-]{20,})/.exec(raw) ?? []
    assert.ok(token !== '', raw)
    const password = secretOf('guest')
    const joined = await fetch(`${stage.apiUrl}/v1/auth/register`, {
      method: 'POST',
      headers: { origin, 'content-type': 'application/json' },
      body: JSON.stringify({ token, name: 'Guest', password }),
    })
    assert.equal(joined.status, 200, await joined.text())
    canaries.push(
      { name: 'invitation', text: token.replace(/^inv_/, '') },
      { name: "guest's password", text: password },
      { name: 'DKIM key', ...privateHalf(await dkimKey()) },
    )
    await submit(stage.secret)
    await submit(`${stage.secret}x`)
    assert.equal(await postLogRecords(own.kumomtaToken), 200)
    assert.equal(await postLogRecords(`${own.kumomtaToken}x`), 401)
    const id = await stage.send({ to: ['anna@example.net'], text: 'The control of the dump' })
    await stage.settled(id, 'delivered')
    await receiver.until(2, '/events')
  })

  it('are used: links to inbound mail', async () => {
    const route = {
      ...{
        domain_id: stage.domain.id,
        match: 'catch_all',
        address: null,
        action: 'endpoint',
        forward_to: null,
      },
      ...{ is_active: true, reason },
    }
    await body(201, stage.admin.post(`${project}/routing`, { ...route, endpoint_id: await endpointId() }))
    const client = await SmtpClient.open(stage.inboundPort)
    const lines = [
      'EHLO example.net',
      'MAIL FROM:<a@example.net>',
      'RCPT TO:<hello@shop.example.org>',
      'DATA',
    ]
    for (const line of [...lines, 'From: a@example.net\r\nSubject: Hello\r\n\r\nHello\r\n.']) {
      client.write(`${line}\r\n`)
      await client.reply()
    }
    const webhook = await stage.eventually('the webhook about the message has arrived', () =>
      receiver.got.find((one) => one.body.includes('/v1/inbound/')),
    )
    const [, link = ''] = /\/v1\/inbound\/([\w-]+)/.exec(webhook.body) ?? []
    assert.equal((await fetch(`${stage.apiUrl}/v1/inbound/${link}`)).status, 200)
    // The first octets identify the message; the last ones are the signature.
    links.push({ name: 'link', text: Buffer.from(link, 'base64url').subarray(24).toString('base64url') })
  })

  it('are sent in the wrong places, and responses do not echo them', async () => {
    // One backup code represents all of them.
    const misused = canaries.filter(({ name }) => !/^backup code [1-9]/.test(name))
    for (const { text } of misused) {
      for (const answer of await Promise.all(mistakes(text))) failures.push(answer)
      failures.push(await rawRequest(`GET /${text} HTTP/9.9\r\nX: ${text}\r\n\r\n`))
    }
    const client = await SmtpClient.open(stage.submissionPorts.startTls)
    for (const { text } of misused) client.write(`AUTH PLAIN ${text}\r\n${text}\r\n`)
    failures.push((await client.reply()) ?? '')
  })

  it('are not found in any channel', async (t) => {
    for (const args of [['secrets', 'status'], ['audit', 'verify'], ['audit', 'key'], ['version']]) {
      printed.push(await stage.postern(...args).catch((error: Error) => error.message))
    }
    const { api, worker, intake } = stage.processes
    const logs = [api, worker, intake].flatMap(({ lines }) => lines)
    const shown = await Promise.all([api, worker, intake].map(({ lines }) => metricsOf(lines)))
    const channels: Record<string, { text: string; control: string }> = {
      dump: { text: await dump(), control: Buffer.from('The control of the dump').toString('hex') },
      logs: { text: logs.join('\n'), control: '"operation":"projects.edit"' },
      'audit export': { text: await stage.postern('audit', 'export'), control: reason },
      metrics: { text: shown.join('\n'), control: 'operation="projects.edit"' },
      traces: { text: collector.bodies.join('\n'), control: '"hand over"' },
      'failed requests': { text: failures.join('\n'), control: '"error":"unauthenticated"' },
      commands: { text: printed.join('\n'), control: 'postern 0.' },
    }
    const search = new Search([...canaries, ...links])
    const inDump = new Search(canaries)
    const found: string[] = []
    for (const [name, { text, control }] of Object.entries(channels)) {
      assert.ok(text.includes(control), `the control value is missing in ${name}: ${text.slice(0, 500)}`)
      // The same search finds the control value in the channel.
      assert.notDeepEqual(new Search([{ name: 'control', text: control }]).in(text), [])
      const here = (name === 'dump' ? inDump : search).in(text)
      t.diagnostic(`${name}: ${text.length} characters, ${here.length} found`)
      found.push(...here.map((one) => `${name}: ${one}`))
    }
    t.diagnostic(`${canaries.length} canaries, ${search.size} spellings`)
    assert.deepEqual(found, [])
    assert.equal(links.length, 1)
    assert.ok(canaries.length >= 25)
  })

  it('would be found in any encoding if they leaked', () => {
    const canary = { name: 'canary', text: 'S+ecret/with "signs" in it', bytes: randomBytes(32) }
    const search = new Search([canary])
    const { text, bytes } = canary
    const spelled = [
      ...[text, text.slice(3), text.slice(0, -4), JSON.stringify({ a: text }), encodeURIComponent(text)],
      ...[Buffer.from(text).toString('base64'), Buffer.from(`x${text}`).toString('base64url')],
      ...[Buffer.from(`user:${text}`).toString('base64'), Buffer.from(text).toString('hex')],
      ...[
        bytes.toString('hex').toUpperCase(),
        bytes.toString('base64'),
        bytes.subarray(6).toString('base64url'),
      ],
    ]
    for (const one of spelled) assert.notDeepEqual(search.in(`before ${one} after`), [], one)
    assert.deepEqual(search.in('nothing of the kind'), [])
  })
})

async function endpointId(): Promise<number | undefined> {
  const { data } = await body<{ data: { id: number }[] }>(200, stage.admin.get(`${project}/endpoints`))
  return data[0]?.id
}

function base32(text: string): Buffer {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = [...text].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** Decrypts the key with the master key, as described in docs/operations/secrets.md. Returns the key as PEM. */
async function dkimKey(): Promise<string> {
  const [row] = await stage.database.query<{ id: string; sealed: Buffer; wrapped: Buffer }>(
    `select dkim_keys.id, encrypted_private_key as sealed, wrapped_key as wrapped
       from control.dkim_keys join control.project_keys using (project_id) where project_id = $1 limit 1`,
    [stage.project.id],
  )
  assert.ok(row)
  const key = open(master, `control.project_keys/wrapped_key/${stage.project.id}/1`, row.wrapped)
  const location = `control.dkim_keys/encrypted_private_key/${stage.project.id}/${row.id}`
  return open(key, location, row.sealed).toString()
}

function open(key: Buffer, location: string, sealed: Buffer): Buffer {
  const decryption = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 13), { authTagLength: 16 })
    .setAAD(Buffer.from(location))
    .setAuthTag(sealed.subarray(13, 29))
  return Buffer.concat([decryption.update(sealed.subarray(29)), decryption.final()])
}

/** The private part of a key. The modulus, which comes first, is public in the DNS. */
function privateHalf(pem: string): { text: string; bytes: Buffer } {
  const letters = pem.replace(/-----[^-]+-----|\s/g, '')
  const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' })
  return { text: letters.slice(Math.ceil(letters.length * 0.4)), bytes: Buffer.from(d, 'base64url') }
}

/** Posts log records as KumoMTA does, with this token. */
async function postLogRecords(token: string): Promise<number> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const url = `${stage.apiUrl}/v1/intake/kumomta`
  return (await fetch(url, { method: 'POST', headers, body: '[{"type":"Delivery"}]' })).status
}

/** Submits a message by SMTP with this password. */
async function submit(password: string): Promise<void> {
  const client = await SmtpClient.openTls(stage.submissionPorts.tls)
  const plain = Buffer.from(`\0postern\0${password}`).toString('base64')
  const lines = [
    ...['EHLO shop.example.org', `AUTH PLAIN ${plain}`, 'MAIL FROM:<orders@shop.example.org>'],
    ...['RCPT TO:<bea@example.net>', 'DATA'],
  ]
  for (const line of lines) {
    client.write(`${line}\r\n`)
    await client.reply()
  }
  client.write('From: orders@shop.example.org\r\nSubject: By SMTP\r\n\r\nHello\r\n.\r\n')
  await client.reply()
}

/** Sends a secret in places where it does not belong. Returns the responses with their headers. */
function mistakes(secret: string): Promise<string>[] {
  const json = { 'content-type': 'application/json' }
  const word = encodeURIComponent(secret)
  const calls: [path: string, init?: RequestInit][] = [
    [`/v1/admin/projects/${word}`],
    [`/v1/messages/${word}`, { headers: { authorization: `Bearer ${stage.secret}` } }],
    [`/v1/projects?token=${word}`],
    [`/v1/inbound/${word}`],
    [`/${word}`],
    ['/v1/admin/projects', { headers: { authorization: `Bearer ${word}` } }],
    ['/v1/admin/projects', { headers: { authorization: `Basic ${Buffer.from(secret).toString('base64')}` } }],
    ['/v1/auth/session', { headers: { cookie: `postern.session_token=${word}` } }],
    ['/v1/auth/sign-in', { method: 'POST', headers: { ...json, origin }, body: `{"password": "${word}` }],
    [
      '/v1/auth/sign-in',
      {
        method: 'POST',
        headers: { ...json, origin },
        body: JSON.stringify({ email: 'nobody@example.net', password: secret }),
      },
    ],
    [
      '/v1/messages',
      {
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${stage.secret}` },
        body: JSON.stringify({ from: secret, to: [secret], subject: 7, text: secret, password: secret }),
      },
    ],
  ]
  return calls.map(async ([path, init]) => {
    const answer = await fetch(new URL(path, stage.apiUrl), init)
    return `${JSON.stringify([...answer.headers])} ${await answer.text()}`
  })
}

/** Sends bytes that no HTTP library would send. */
const rawRequest = (text: string): Promise<string> =>
  new Promise((resolve) => {
    let received = ''
    const socket = connect(Number(new URL(stage.apiUrl).port), '127.0.0.1', () => socket.write(text))
    socket.setTimeout(patienceMs, () => socket.destroy())
    socket.on('data', (chunk) => {
      received += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
  })

async function metricsOf(lines: readonly string[]): Promise<string> {
  const { port } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'serving metrics')
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
}

/** A complete dump of the database, as in a backup. */
async function dump(): Promise<string> {
  const [program = 'pg_dump'] = globSync('/usr/lib/postgresql/*/bin/pg_dump').sort().reverse()
  const args = ['--dbname', stage.database.superuserUrl]
  return (await promisify(execFile)(program, args, { maxBuffer: 2 ** 28 })).stdout
}
