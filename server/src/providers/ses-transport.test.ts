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

/** The real SDK, and a peer that does what SES documents. */
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

function carrierWith(options: Partial<SesTransportOptions> = {}): SesTransport {
  const carrier = new SesTransport({ ...access, configurationSet: sesConfigurationSet, ...options })
  cleanUp(async () => carrier.close())
  return carrier
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

/** What a carrier makes of a fault, how often the peer was asked, and how often it took the mail. */
async function meet(fault: SesFault, options: Partial<SesTransportOptions> = {}) {
  const [carrier, mail, before] = [carrierWith(options), mailTo(), sends()]
  peer.failNext('send', fault)
  const handover = await carrier.send(mail)
  assert.ok(!inspect(handover).includes('canary'), 'no secret is told')
  return { carrier, handover, asked: sends() - before, taken: takenFor(mail) }
}

const kindOf = (handover: Handover): string =>
  handover.kind === 'unreachable' ? `unreachable, may be sent: ${handover.mayBeSent}` : handover.kind

describe('a mail by SES', () => {
  test('goes to one recipient, with the configuration set and the signed tag of the mail', async () => {
    const mail = mailTo()
    const handover = await carrierWith().send(mail)
    const taken = peer.mails.at(-1) ?? assert.fail()
    assert.deepEqual(handover, {
      ...{ kind: 'sent', host: new URL(peer.url).host, queueId: taken.sesId },
      reply: `Accepted by SES as ${taken.sesId}.`,
    })
    assert.equal(taken.to, mail.envelope.to)
    assert.equal(taken.configurationSet, sesConfigurationSet)
    assert.deepEqual(taken.tags, { [sesMailTag]: [`bounce-${'a2'.repeat(24)}`] })
    assert.ok(taken.raw.equals(mail.raw), 'octet for octet')
  })

  // SES has no idempotency token: whatever is not certain is not repeated, by nobody.
  const certain = { asked: 1, taken: 0 }
  const faults: [SesFault, string, { asked: number; taken: number }][] = [
    ['internal', 'unknown', certain],
    ['unavailable', 'unknown', certain],
    ['fail_afterwards', 'unknown', { asked: 1, taken: 1 }],
    ['lose_request', 'unknown', certain],
    ['lose_answer', 'unknown', { asked: 1, taken: 1 }],
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
    test(`${String(fault)}: called once, and ${kind}`, async () => {
      const { handover, asked, taken } = await meet(fault)
      assert.equal(kindOf(handover), kind)
      assert.deepEqual({ asked, taken }, counts)
      if (handover.kind === 'refused') assert.equal(handover.isPermanent, true)
    })
  }

  test('without a response at the time limit has an unknown outcome', { timeout: patienceMs }, async (t) => {
    const [mail, answer] = [mailTo(), Promise.withResolvers<void>()]
    t.after(() => {
      delete peer.hooks.onEffect
      answer.resolve()
    })
    peer.hooks.onEffect = () => answer.promise
    const handover = await carrierWith({ limits: { sendMs: 3000 } }).send(mail)
    assert.equal(handover.kind, 'unknown')
    assert.equal(takenFor(mail), 1)
  })

  test('whose response takes longer than the idle timeout is sent', async () => {
    assert.equal((await meet({ answerDelayMs: 3500 })).handover.kind, 'sent')
  })

  test('is refused locally if SES could not accept it', async () => {
    const before = sends()
    const carrier = carrierWith()
    for (const [mail, status] of [
      [mailTo('jörg@example.net'), '5.6.7'],
      [mailTo(undefined, { needsUtf8: true }), '5.6.7'],
      [mailTo(undefined, { raw: Buffer.alloc(40_000_001, 'x') }), '5.3.4'],
      [mailTo(undefined, { envelope: { from: '', to: 'a@example.net' } }), '5.6.0'],
    ] as const) {
      const handover = await carrier.send(mail)
      assert.ok(handover.kind === 'refused' && handover.isPermanent && handover.status === status)
    }
    assert.equal(sends(), before)
  })

  test('under a name that SES has not verified is permanently refused', async () => {
    const raw = Buffer.from('From: a@other.example\r\n\r\nHello\r\n')
    assert.equal((await carrierWith().send(mailTo(undefined, { raw }))).kind, 'refused')
  })

  test('with an unknown configuration set waits for the operator', async () => {
    const handover = await carrierWith({ configurationSet: 'elsewhere' }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false')
  })
})

/** Somebody who listens and does this with whoever connects. */
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
    const handover = await carrierWith({
      endpoint,
      limits: { connectMs: 300, sendMs: 10 * patienceMs },
    }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false', inspect(handover))
  }

  test('is refused', async () => never(`http://127.0.0.1:${await steadyPort()}`))
  test('has a name that does not resolve', async () => never('http://ses.invalid'))
  test('meets a server without TLS', async () =>
    never(`https://${await listener((socket) => socket.end('no\r\n\r\n'))}`))
  test('is lost during the TLS handshake', async () =>
    never(`https://${await listener((socket) => socket.destroy())}`))
  test('gets no reply to the TLS handshake', async () => never(`https://${await listener(() => {})}`))

  test('leaves the outcome known; one that was established and lost does not', async () => {
    const host = await listener((socket) => void socket.once('data', () => socket.destroy()))
    assert.equal((await carrierWith({ endpoint: `http://${host}` }).send(mailTo())).kind, 'unknown')
  })

  test('credentials of another account send nothing', async () => {
    const before = sends()
    const credentials = { ...access.credentials, accountId: '999988887777' }
    const handover = await carrierWith({ credentials }).send(mailTo())
    assert.equal(kindOf(handover), 'unreachable, may be sent: false')
    assert.equal(sends(), before)
  })
})

describe('an unavailable SES', () => {
  test('is backed off exponentially, then probed with one mail, and then used again', async () => {
    const rests: number[] = []
    let clock = 0
    const carrier = carrierWith({
      limits: { firstBackoffMs: 200, maxBackoffMs: 800 },
      onBackoff: (_why, ms) => rests.push(ms),
      now: () => clock,
    })
    const before = sends()
    peer.failNext('send', 'too_many_requests', 3)
    await carrier.send(mailTo())
    assert.ok(carrier.isUnavailable)
    assert.equal((await carrier.send(mailTo())).kind, 'unreachable')
    assert.equal(sends() - before, 1, 'it was not asked while it rests')
    for (const backoffMs of [200, 400]) {
      clock += backoffMs - 1
      assert.ok(carrier.isUnavailable, 'the backoff has not ended')
      clock += 1
      assert.ok(!carrier.isUnavailable)
      const both = await Promise.all([carrier.send(mailTo()), carrier.send(mailTo())])
      assert.deepEqual(
        both.map(({ kind }) => kind),
        ['unreachable', 'unreachable'],
      )
    }
    assert.equal(sends() - before, 3, 'one mail each time')
    assert.deepEqual(rests, [200, 400, 800])
    clock += 800
    assert.equal((await carrier.send(mailTo())).kind, 'sent')
    assert.ok(!carrier.isUnavailable)
    const all = await Promise.all(Array.from({ length: 5 }, () => carrier.send(mailTo())))
    assert.ok(all.every(({ kind }) => kind === 'sent'))
  })

  test('is not backed off because it refuses a mail', async () => {
    const { carrier } = await meet('message_rejected')
    assert.ok(!carrier.isUnavailable)
  })
})
