import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { sesMailTag } from '../formats/ses-event.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { patienceMs } from '../testing/harness/waiting.ts'
import { sesConfigurationSet } from '../testing/peers/ses-outbound.ts'
import { type SesFault, sesCredentials, startSesPeer } from '../testing/peers/ses-peer.ts'
import { steadyPort } from '../testing/peers/steady-port.ts'
import { SesProvider } from './ses-identities.ts'
import { SesTransport, type SesTransportOptions } from './ses-transport.ts'
import type { Handover, Mail } from './transport.ts'

/** Uses the real SDK with a peer that behaves as SES documents. */
const peer = await startSesPeer()
const access = {
  region: peer.location.region,
  accountId: peer.location.account,
  endpoint: peer.url,
  credentials: sesCredentials(peer.location.account),
}
const identities = new SesProvider(access)
await identities.register('shop.example')
peer.setDkim('shop.example', 'SUCCESS')
cleanUp(async () => identities.close())

function transportWith(options: Partial<SesTransportOptions> = {}): SesTransport {
  const transport = new SesTransport({ ...access, configurationSet: sesConfigurationSet, ...options })
  cleanUp(async () => transport.close())
  return transport
}

let numbered = 0

function mailTo(to = `r${++numbered}@example.net`, changes: Partial<Mail> = {}): Mail {
  const raw = ['From: Shop <a@shop.example>', `To: ${to}`, 'Message-ID: <1@shop.example>', '', 'Hello', '']
  return {
    envelope: { from: `bounce-${'a2'.repeat(24)}@bounces.shop.example`, to },
    dsn: { envid: 'x.0.1' },
    raw: Buffer.from(raw.join('\r\n')),
    needsUtf8: false,
    ...changes,
  }
}

const sends = () => peer.calls.filter(({ kind }) => kind === 'send').length
const takenFor = ({ envelope }: Mail) => peer.mails.filter(({ to }) => to === envelope.to).length

/**
 * Sends a message while the peer simulates a fault. Returns the outcome, the number of calls and how often
 * the peer accepted the message.
 */
async function sendDuring(fault: SesFault, options: Partial<SesTransportOptions> = {}) {
  const [transport, mail, before] = [transportWith(options), mailTo(), sends()]
  peer.failNext('send', fault)
  const handover = await transport.send(mail)
  assert.ok(!inspect(handover).includes('canary'), 'no secret is revealed')
  return { transport, handover, calls: sends() - before, taken: takenFor(mail) }
}

const kindOf = (handover: Handover): string =>
  handover.kind === 'unreachable' ? `unreachable, may be sent: ${handover.mayBeSent}` : handover.kind

describe('a message sent through SES', () => {
  test("is sent to one recipient, with the configuration set and the message's signed tag", async () => {
    const mail = mailTo()
    const handover = await transportWith().send(mail)
    const taken = peer.mails.at(-1) ?? assert.fail()
    assert.deepEqual(handover, {
      ...{ kind: 'sent', host: new URL(peer.url).host, queueId: taken.sesId },
      reply: `Accepted by SES as ${taken.sesId}.`,
    })
    assert.equal(taken.to, mail.envelope.to)
    assert.equal(taken.configurationSet, sesConfigurationSet)
    assert.deepEqual(taken.tags, { [sesMailTag]: [`bounce-${'a2'.repeat(24)}`] })
    assert.ok(taken.raw.equals(mail.raw), 'unchanged')
  })

  // SES has no idempotency key, so a send with an uncertain outcome is never repeated.
  const certain = { calls: 1, taken: 0 }
  const faults: [SesFault, string, { calls: number; taken: number }][] = [
    ['internal', 'unknown', certain],
    ['unavailable', 'unknown', certain],
    ['fail_afterwards', 'unknown', { calls: 1, taken: 1 }],
    ['lose_request', 'unknown', certain],
    ['lose_answer', 'unknown', { calls: 1, taken: 1 }],
    ['too_many_requests', 'unreachable, may be sent: false', certain],
    ['throttling', 'unreachable, may be sent: false', certain],
    ['sending_paused', 'unreachable, may be sent: false', certain],
    ['account_suspended', 'unreachable, may be sent: false', certain],
    ['day_quota', 'unreachable, may be sent: false', certain],
    ['access_denied', 'unreachable, may be sent: false', certain],
    ['expired_token', 'unreachable, may be sent: false', certain],
    ['no_such_path', 'unreachable, may be sent: false', certain],
    ['nameless', 'unreachable, may be sent: false', certain],
    ['wrong_clock', 'unreachable, may be sent: false', certain],
    ['from_unverified', 'unreachable, may be sent: false', certain],
    ['message_rejected', 'refused', certain],
    ['bad_request', 'refused', certain],
  ]
  for (const [fault, kind, counts] of faults) {
    test(`${String(fault)}: SES is called once, and the outcome is ${kind}`, async () => {
      const { handover, calls, taken } = await sendDuring(fault)
      assert.equal(kindOf(handover), kind)
      assert.deepEqual({ calls, taken }, counts)
      if (handover.kind === 'refused') assert.equal(handover.isPermanent, true)
    })
  }

  test('without a response before the timeout has an unknown outcome', { timeout: patienceMs }, async (t) => {
    const [mail, answer] = [mailTo(), Promise.withResolvers<void>()]
    t.after(() => {
      delete peer.hooks.onEffect
      answer.resolve()
    })
    peer.hooks.onEffect = () => answer.promise
    const handover = await transportWith({ limits: { sendMs: 3000 } }).send(mail)
    assert.equal(handover.kind, 'unknown')
    assert.equal(takenFor(mail), 1)
  })

  test('is sent even if the response takes longer than the idle timeout', async () => {
    assert.equal((await sendDuring({ answerDelayMs: 3500 })).handover.kind, 'sent')
  })

  test('is rejected locally if SES would not accept it', async () => {
    const before = sends()
    const transport = transportWith()
    for (const [mail, status] of [
      [mailTo('jörg@example.net'), '5.6.7'],
      [mailTo(undefined, { needsUtf8: true }), '5.6.7'],
      [mailTo(undefined, { raw: Buffer.alloc(40_000_001, 'x') }), '5.3.4'],
      [mailTo(undefined, { envelope: { from: '', to: 'a@example.net' } }), '5.6.0'],
    ] as const) {
      const handover = await transport.send(mail)
      assert.ok(handover.kind === 'refused' && handover.isPermanent && handover.status === status)
    }
    assert.equal(sends(), before)
  })

  test('from a domain that SES has not verified is permanently rejected', async () => {
    const raw = Buffer.from('From: a@other.example\r\n\r\nHello\r\n')
    assert.equal((await transportWith().send(mailTo(undefined, { raw }))).kind, 'refused')
  })

  test('with an unknown configuration set is retried until the operator fixes it', async () => {
    const handover = await transportWith({ configurationSet: 'elsewhere' }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false')
  })
})

/** A TCP server that calls `onSocket` for each connection. Returns its host and port. */
async function listener(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

describe('a connection to SES that was never established', () => {
  const never = async (endpoint: string) => {
    const handover = await transportWith({
      endpoint,
      limits: { connectMs: 300, sendMs: 10 * patienceMs },
    }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false', inspect(handover))
  }

  test('is refused', async () => never(`http://127.0.0.1:${await steadyPort()}`))
  test('has a name that does not resolve', async () => never('http://ses.invalid'))
  test('reaches a server without TLS', async () =>
    never(`https://${await listener((socket) => socket.end('no\r\n\r\n'))}`))
  test('is lost during the TLS handshake', async () =>
    never(`https://${await listener((socket) => socket.destroy())}`))
  test('gets no reply to the TLS handshake', async () => never(`https://${await listener(() => {})}`))

  test('has a known outcome, unlike an established connection that was lost', async () => {
    const host = await listener((socket) => void socket.once('data', () => socket.destroy()))
    assert.equal((await transportWith({ endpoint: `http://${host}` }).send(mailTo())).kind, 'unknown')
  })

  test("another account's credentials send nothing", async () => {
    const before = sends()
    const credentials = { ...access.credentials, accountId: '999988887777' }
    const handover = await transportWith({ credentials }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false')
    assert.equal(sends(), before)
  })
})

describe('an unavailable SES', () => {
  test('is backed off exponentially, then probed with one message, and then used again', async () => {
    const rests: number[] = []
    let clock = 0
    const transport = transportWith({
      limits: { firstBackoffMs: 200, maxBackoffMs: 800 },
      onBackoff: (_why, ms) => rests.push(ms),
      now: () => clock,
    })
    const before = sends()
    peer.failNext('send', 'too_many_requests', 3)
    await transport.send(mailTo())
    assert.ok(transport.isUnavailable)
    assert.equal((await transport.send(mailTo())).kind, 'unreachable')
    assert.equal(sends() - before, 1, 'it is not called during the backoff')
    for (const backoffMs of [200, 400]) {
      clock += backoffMs - 1
      assert.ok(transport.isUnavailable, 'the backoff has not ended')
      clock += 1
      assert.ok(!transport.isUnavailable)
      const both = await Promise.all([transport.send(mailTo()), transport.send(mailTo())])
      assert.deepEqual(
        both.map(({ kind }) => kind),
        ['unreachable', 'unreachable'],
      )
    }
    assert.equal(sends() - before, 3, 'one message each time')
    assert.deepEqual(rests, [200, 400, 800])
    clock += 800
    assert.equal((await transport.send(mailTo())).kind, 'sent')
    assert.ok(!transport.isUnavailable)
    const all = await Promise.all(Array.from({ length: 5 }, () => transport.send(mailTo())))
    assert.ok(all.every(({ kind }) => kind === 'sent'))
  })

  test('is not backed off because it rejects a message', async () => {
    const { transport } = await sendDuring('message_rejected')
    assert.ok(!transport.isUnavailable)
  })
})
