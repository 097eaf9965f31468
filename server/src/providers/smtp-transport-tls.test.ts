import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { someMail } from '../testing/fixtures/mail-samples.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { patienceMs } from '../testing/harness/waiting.ts'
import { makeCertificate } from '../testing/peers/certificate.ts'
import { ServiceProvider, smtpAddressOf } from './smtp-transport.ts'

interface Seen {
  isSecure: boolean
  user: unknown
  raw: string
  dsn: unknown
}

const { cert, key } = makeCertificate()

/** An independent SMTP server with a self-signed certificate. */
async function startServer(options: SMTPServerOptions): Promise<{ port: number; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = new SMTPServer({
    ...{ key, cert, ...options },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { envelope, secure, user } = session
        seen.push({ isSecure: secure, user, raw: Buffer.concat(chunks).toString(), dsn: envelope.dsn })
        done(null, 'Ok: queued as OTHER1')
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(() => new Promise<void>((resolve) => server.close(resolve)))
  return { port: (server.server.address() as AddressInfo).port, seen }
}

function serviceFor(url: string): ServiceProvider {
  const timeouts = { openMs: patienceMs, silenceMs: patienceMs, mailMs: patienceMs }
  const service = new ServiceProvider({
    hosts: [smtpAddressOf(new URL(url))],
    name: 'postern.example',
    timeouts,
  })
  cleanUp(async () => service.close())
  return service
}

const login: SMTPServerOptions = {
  onAuth: ({ username, password }, _session, done) =>
    username === 'po@stern' && password === 'pass:word/ü'
      ? done(null, { user: username })
      : done(new Error('Wrong password')),
}

describe('an MTA', () => {
  test('receives the message unchanged, over TLS if it offers STARTTLS', async () => {
    const { port, seen } = await startServer({ authOptional: true })
    const mail = someMail()
    const handover = await serviceFor(`smtp://127.0.0.1:${port}`).send(mail)
    assert.equal(handover.kind === 'sent' && handover.queueId, 'OTHER1')
    assert.equal(seen[0]?.isSecure, true)
    assert.equal(seen[0]?.raw, mail.raw.toString())
  })

  test('receives the message in cleartext if it does not', async () => {
    const { port, seen } = await startServer({ authOptional: true, disabledCommands: ['STARTTLS'] })
    assert.equal((await serviceFor(`smtp://127.0.0.1:${port}`).send(someMail())).kind, 'sent')
    assert.equal(seen[0]?.isSecure, false)
  })

  test('receives the password from its URL', async () => {
    const { port, seen } = await startServer(login)
    const secret = encodeURIComponent('pass:word/ü')
    assert.equal(
      (await serviceFor(`smtp://po%40stern:${secret}@127.0.0.1:${port}`).send(someMail())).kind,
      'sent',
    )
    assert.equal(seen[0]?.user, 'po@stern')
    const wrong = await serviceFor(`smtp://po%40stern:wrong@127.0.0.1:${port}`).send(someMail())
    assert.match(wrong.kind === 'unreachable' ? wrong.detail : '', /Wrong password|Invalid login/)
    assert.doesNotMatch(JSON.stringify(wrong), /po@stern|:wrong@/)
    const none = await serviceFor(`smtp://127.0.0.1:${port}`).send(someMail())
    assert.match(none.kind === 'refused' ? none.reply : '', /authentication/i)
  })

  test('that has a self-signed certificate is rejected if TLS is required', async () => {
    const { port, seen } = await startServer({ authOptional: true, secure: true })
    const handover = await serviceFor(`smtps://127.0.0.1:${port}`).send(someMail())
    assert.match(handover.kind === 'unreachable' ? handover.detail : '', /certificate/i)
    assert.equal(seen.length, 0)
  })

  test('receives no password without a valid certificate, except over loopback', async () => {
    for (const options of [{ ...login }, { ...login, disabledCommands: ['STARTTLS'] }]) {
      const attempts: unknown[] = []
      const { port, seen } = await startServer({
        ...options,
        allowInsecureAuth: true,
        onAuth: (auth, session, done) => {
          attempts.push(auth)
          login.onAuth?.(auth, session, done)
        },
      })
      // An address of this machine that is not recognized as loopback.
      const handover = await serviceFor(`smtp://po%40stern:x@[::ffff:127.0.0.1]:${port}`).send(someMail())
      assert.match(handover.kind === 'unreachable' ? handover.detail : '', /certificate|STARTTLS/i)
      assert.deepEqual([attempts, seen], [[], []])
    }
  })

  test('receives no password if it does not offer AUTH', async () => {
    const { port, seen } = await startServer({ authOptional: true, disabledCommands: ['AUTH', 'STARTTLS'] })
    const handover = await serviceFor(`smtp://a:b@127.0.0.1:${port}`).send(someMail())
    assert.match(handover.kind === 'unreachable' ? handover.detail : '', /does not offer AUTH/)
    assert.equal(seen.length, 0)
  })
})

test('the URL of an MTA is parsed with its port, user and password', () => {
  const read = (url: string) => smtpAddressOf(new URL(url))
  assert.deepEqual(read('smtp://mta.example.com'), {
    host: 'mta.example.com',
    port: 25,
    isTls: false,
    login: null,
  })
  assert.deepEqual(read('smtps://a%40b:c%3Ad@mta.example.com'), {
    host: 'mta.example.com',
    port: 465,
    isTls: true,
    login: { user: 'a@b', pass: 'c:d' },
  })
  assert.deepEqual(read('smtp://[::1]:2525'), { host: '::1', port: 2525, isTls: false, login: null })
})
