import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { someMail } from '../testing/fixtures/mail-samples.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { eventually, patienceMs } from '../testing/harness/waiting.ts'
import { type Script, SmtpPeer } from '../testing/peers/smtp-peer.ts'
import type { SmtpTimeouts } from './smtp-client.ts'
import { queueIdOf, type ServiceOptions, ServiceProvider, smtpAddressOf } from './smtp-transport.ts'

/** A timeout that no test reaches. */
const neverMs = 10 * patienceMs
const ordinary = { openMs: neverMs, silenceMs: neverMs, mailMs: neverMs, idleMs: neverMs }

/** Tests of timeouts set their own, and tests of backoff have their own clock. */
function serviceFor(peers: readonly SmtpPeer[], options: Partial<ServiceOptions> = {}): ServiceProvider {
  const service = new ServiceProvider({
    hosts: peers.map(({ url }) => smtpAddressOf(new URL(url))),
    name: 'postern.example',
    ...options,
    timeouts: { ...ordinary, ...options.timeouts },
    limits: { firstBackoffMs: 200, maxBackoffMs: 800, ...options.limits },
  })
  cleanUp(async () => service.close())
  return service
}

const hostOf = ({ url }: SmtpPeer) => url.replace('smtp://', '')
const mailCommandsOf = ({ commands }: SmtpPeer) => commands.filter((line) => line.startsWith('MAIL')).length

test('the provider "service" accepts every name and returns no tokens', async () => {
  const service = serviceFor([])
  assert.equal(service.name, 'service')
  assert.deepEqual(service.location, { account: null, region: null })
  const none = { dkimTokens: [], dkimZone: null }
  assert.deepEqual(await service.register(), none)
  assert.deepEqual(await service.describe(), { isRegistered: true, isVerified: true, ...none, detail: null })
  await service.deregister()
})

describe('a message sent to an MTA', () => {
  test("is sent unchanged, with DSN parameters, and has the MTA's queue id", async () => {
    const peer = await SmtpPeer.start()
    const mail = someMail()
    assert.deepEqual(await serviceFor([peer]).send(mail), {
      kind: 'sent',
      host: hostOf(peer),
      queueId: 'Q0',
      reply: '250 2.0.0 Ok: queued as Q0',
    })
    const [taken] = peer.mails
    assert.equal(
      taken?.from,
      `MAIL FROM:<bounce-abc@bounces.example.com> SIZE=${mail.raw.length} RET=HDRS ENVID=0190a5b2-7c1d-7e3f-8a4b-5c6d7e8f9a0b.0.1`,
    )
    assert.deepEqual(taken?.to, [
      'RCPT TO:<bob@example.org> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;bob@example.org',
    ])
    assert.equal(`${taken?.raw}\r\n`, mail.raw.toString().replace(/^\./gm, '..'))
    assert.equal(peer.commands[0], 'EHLO postern.example')
  })

  test('reuses an open session up to its message limit', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { limits: { mailsPerSession: 3 } })
    for (let n = 0; n < 7; n++) assert.equal((await service.send(someMail())).kind, 'sent')
    assert.equal(peer.mails.length, 7)
    assert.equal(peer.sessions, 3)
  })

  test('is rejected permanently or temporarily, and the session is reused', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    for (const [verb, reply, isPermanent, status] of [
      ['MAIL', '550 5.7.1 Sender refused', true, '5.7.1'],
      ['RCPT', '550-5.1.1 No such\r\n550 5.1.1 user', true, '5.1.1'],
      ['RCPT', '451 4.7.1 Greylisted', false, '4.7.1'],
      ['DATA', '451 Not now', false, null],
      ['.', '554 5.6.0 Not this one', true, '5.6.0'],
      ['.', '452 4.2.2 Over quota', false, '4.2.2'],
    ] as const) {
      for (const extensions of [['PIPELINING', 'DSN'], []]) {
        peer.script = { answers: { [verb]: reply }, extensions }
        const refused = {
          kind: 'refused',
          isPermanent,
          status,
          host: hostOf(peer),
          reply: reply.replace('\r\n', ' '),
        }
        assert.deepEqual(await service.send(someMail()), refused)
      }
      peer.script = {}
      assert.equal((await service.send(someMail())).kind, 'sent')
    }
    assert.equal(peer.mails.length, 6)
  })

  test("is rejected locally if it exceeds the MTA's SIZE", async () => {
    const peer = await SmtpPeer.start({ extensions: ['SIZE 1000'] })
    const handover = await serviceFor([peer]).send(someMail({ raw: Buffer.alloc(2000, 'x') }))
    assert.equal(handover.kind === 'refused' && handover.isPermanent && handover.status, '5.3.4')
    assert.equal(mailCommandsOf(peer), 0)
  })

  test('is never sent with a malformed envelope', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    const bad = [
      '',
      'x',
      'a b@example.org',
      'a@b.example>',
      'a@b.example> SIZE=1',
      'a@b.example\r\nRCPT TO:<c@d.example>',
    ]
    bad.push(
      'a@b.example\0',
      '<a@b.example>',
      'a@B.example',
      'a@b.example\n',
      ' a@b.example',
      'a@bücher.example',
      'a@b',
    )
    for (const to of bad) {
      for (const envelope of [
        { from: 'a@example.com', to },
        ...(to === '' ? [] : [{ from: to, to: 'a@example.com' }]),
      ]) {
        const handover = await service.send(someMail({ envelope }))
        assert.ok(
          handover.kind === 'refused' && handover.isPermanent && handover.host === null,
          JSON.stringify(envelope),
        )
      }
    }
    const handover = await service.send(someMail({ dsn: { envid: 'a\r\nDATA' } }))
    assert.equal(handover.kind, 'refused')
    assert.equal(peer.sessions, 0)
    assert.equal((await service.send(someMail({ envelope: { from: '', to: 'a@example.com' } }))).kind, 'sent')
    assert.match(peer.mails[0]?.from ?? '', /^MAIL FROM:<> /)
  })

  test('declares SMTPUTF8 if an address in the envelope or the header needs it', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    const envelope = { from: 'b@bounces.example.com', to: 'jörg+a=b@xn--bcher-kva.example' }
    await service.send(someMail({ envelope }))
    await service.send(someMail({ needsUtf8: true }))
    await service.send(someMail())
    const [abroad, header, plain] = peer.mails
    assert.match(abroad?.from ?? '', / SMTPUTF8 BODY=8BITMIME /)
    assert.equal(
      abroad?.to[0],
      'RCPT TO:<jörg+a=b@xn--bcher-kva.example> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=utf-8;j\\x{F6}rg\\x{2B}a\\x{3D}b@xn--bcher-kva.example',
    )
    assert.match(header?.from ?? '', / BODY=8BITMIME .* SMTPUTF8$/)
    assert.doesNotMatch(plain?.from ?? '', /SMTPUTF8|8BITMIME/)

    peer.script = { extensions: ['PIPELINING', '8BITMIME'] }
    peer.cutOff()
    const refused = await service.send(someMail({ envelope }))
    assert.ok(refused.kind === 'refused' && refused.isPermanent && refused.status === '5.6.7')
    assert.equal((await service.send(someMail())).kind, 'sent')
  })

  test('with 8-bit data is sent only to an MTA with 8BITMIME', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    const raw = Buffer.from('From: ada@example.com\r\n\r\nGr\u00fc\u00dfe\r\n')
    assert.equal((await service.send(someMail({ raw }))).kind, 'sent')
    assert.match(peer.mails[0]?.from ?? '', / BODY=8BITMIME /)
    assert.ok(peer.mails[0]?.raw.includes(raw.subarray(0, -2)))

    peer.script = { extensions: ['PIPELINING'] }
    peer.cutOff()
    const refused = await service.send(someMail({ raw }))
    assert.ok(refused.kind === 'refused' && refused.isPermanent && refused.status === '5.6.3')
    assert.equal(peer.mails.length, 1)
  })
})

describe('an unreachable host', () => {
  test('is reported regardless of how it fails to reply', { timeout: 2 * patienceMs }, async () => {
    const noGreeting = /^no greeting within 400 ms$|Greeting never received/
    const cases: [Script, mayBeSent: boolean, detail: RegExp, limits?: Partial<SmtpTimeouts>][] = [
      [{ greeting: 'silence' }, false, noGreeting, { openMs: 400 }],
      [{ greeting: 'close' }, false, /closed/],
      [{ greeting: 'reset' }, false, /ECONNRESET|closed/],
      [{ greeting: '554 5.3.2 No service' }, false, /554 5\.3\.2/],
      [{ greeting: '421 4.3.2 Later' }, false, /421/],
      [{ octetMs: 60 }, false, noGreeting, { openMs: 400 }],
      [{ answers: { EHLO: 'silence' } }, false, noGreeting, { openMs: 400 }],
      [{ answers: { MAIL: 'silence' } }, false, /Timeout/, { silenceMs: 400 }],
      [{ answers: { RCPT: 'reset' } }, false, /ECONNRESET|closed/],
      [{ answers: { RCPT: '421 4.3.2 Shutting down' } }, false, /421/],
      [{ answers: { DATA: 'close' } }, false, /closed/],
      [{ answers: { BODY: 'reset' } }, true, /ECONNRESET|closed/],
      [{ answers: { BODY: 'close' } }, true, /closed/],
      [{ answers: { '.': 'reset' } }, true, /ECONNRESET|closed/],
      [{ answers: { '.': 'close' } }, true, /closed/],
      // Long enough for all earlier replies.
      [{ answers: { '.': 'silence' } }, true, /Timeout/, { silenceMs: 2000 }],
      [{ answers: { '.': '421 4.3.0 Not taken' } }, false, /421/],
    ]
    for (const [script, mayBeSent, detail, limits = {}] of cases) {
      const peer = await SmtpPeer.start(script)
      const handover = await serviceFor([peer], { timeouts: limits }).send(someMail())
      const what = JSON.stringify(script)
      assert.ok(handover.kind === 'unreachable', `${what}: ${JSON.stringify(handover)}`)
      assert.equal(handover.mayBeSent, mayBeSent, what)
      assert.match(handover.detail, detail, what)
      assert.equal(handover.host, hostOf(peer))
    }
  })

  test('is reported when it replies one octet at a time', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { timeouts: { mailMs: 2000 } })
    assert.equal((await service.send(someMail())).kind, 'sent')
    // The replies to one message take more than ten seconds.
    peer.script = { octetMs: 100 }
    const handover = await service.send(someMail())
    const [, limit] = /^no reply within (\d+) ms$/.exec('detail' in handover ? handover.detail : '') ?? []
    assert.ok(Number(limit) <= 2000, JSON.stringify(handover))
  })

  test('can close an idle session without a backoff', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    for (let n = 0; n < 3; n++) {
      assert.equal((await service.send(someMail())).kind, 'sent')
      peer.cutOff()
    }
    assert.equal((await service.send(someMail())).kind, 'sent')
    const greeting = Promise.withResolvers<void>()
    const { sessions } = peer
    peer.script = {
      answers: { MAIL: '421 4.4.2 Idle for too long' },
      waitsFor: { greeting: greeting.promise },
    }
    const begun = service.send(someMail())
    await eventually('a new session is opened', () => peer.sessions > sessions)
    peer.script = {}
    greeting.resolve()
    assert.equal((await begun).kind, 'sent')
    assert.equal(service.isUnavailable, false)
    assert.equal(peer.mails.length, 5)
  })

  test('is backed off exponentially, then probed with one message, and then used again', async () => {
    const peer = await SmtpPeer.start()
    let clock = 0
    const limits = { firstBackoffMs: 400, maxBackoffMs: 800 }
    const service = serviceFor([peer], { limits, now: () => clock })
    await service.send(someMail())
    await peer.stop()
    const [sessions] = [peer.sessions]
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    assert.equal(service.isUnavailable, true)
    const rested = await service.send(someMail())
    assert.deepEqual(rested, {
      kind: 'unreachable',
      host: null,
      detail: 'no MTA is reachable; the next attempt is not due yet',
      mayBeSent: false,
    })
    // A backoff has a jitter of up to a fifth.
    clock += 319
    assert.equal(service.isUnavailable, true, 'the first backoff has not ended')
    clock += 162
    assert.equal(service.isUnavailable, false, 'the first backoff has ended')
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    clock += 639
    assert.equal(service.isUnavailable, true, 'the second backoff is longer')
    clock += 322
    assert.equal(service.isUnavailable, false)

    const greeting = Promise.withResolvers<void>()
    peer.script = { waitsFor: { greeting: greeting.promise } }
    await peer.listen()
    const kinds: string[] = []
    const sending = Array.from({ length: 10 }, async () => {
      kinds.push((await service.send(someMail())).kind)
    })
    await eventually('all but one have come back', () => kinds.length === 9)
    assert.ok(kinds.every((kind) => kind === 'unreachable'))
    greeting.resolve()
    await Promise.all(sending)
    assert.equal(kinds.at(-1), 'sent', 'one message probes it')
    assert.equal(peer.sessions, sessions + 1)
    assert.equal(service.isUnavailable, false)
    const then = await Promise.all(Array.from({ length: 10 }, () => service.send(someMail())))
    assert.ok(then.every(({ kind }) => kind === 'sent'))
  })

  test('is backed off once if many messages fail together', async () => {
    const peer = await SmtpPeer.start({ answers: { MAIL: 'silence' } })
    let clock = 0
    const service = serviceFor([peer], { limits: { maxBackoffMs: 10_000 }, now: () => clock })
    const begun = Array.from({ length: 10 }, () => service.send(someMail()))
    await eventually('all wait for an answer', () => mailCommandsOf(peer) === 10)
    await peer.stop()
    for (const { kind } of await Promise.all(begun)) assert.equal(kind, 'unreachable')
    assert.equal(service.isUnavailable, true)
    // The longest first backoff; a second would be at least 320.
    clock += 241
    assert.equal(service.isUnavailable, false)
  })

  test('is backed off when it is out of resources, but not when it rejects a message', async () => {
    const peer = await SmtpPeer.start({ answers: { RCPT: '451 4.3.0 Look-up failed' } })
    const service = serviceFor([peer])
    assert.equal((await service.send(someMail())).kind, 'refused')
    assert.equal(service.isUnavailable, false)
    peer.script = { answers: { MAIL: '452 4.3.1 Insufficient system storage' } }
    const handover = await service.send(someMail())
    assert.equal(handover.kind === 'refused' && handover.isPermanent, false)
    assert.equal(service.isUnavailable, true)
  })
})

describe('several hosts', () => {
  test('share the mail', async () => {
    const peers = [await SmtpPeer.start(), await SmtpPeer.start(), await SmtpPeer.start()]
    const service = serviceFor(peers)
    await Promise.all(Array.from({ length: 30 }, () => service.send(someMail())))
    for (let n = 0; n < 30; n++) await service.send(someMail())
    assert.deepEqual(
      peers.map(({ mails }) => mails.length),
      [20, 20, 20],
    )
  })

  test('continue when one of them fails, without losing mail', async (t) => {
    const [alive, dead] = [await SmtpPeer.start(), await SmtpPeer.start({ greeting: 'silence' })]
    const openMs = 8000
    const service = serviceFor([dead, alive], { timeouts: { openMs }, now: () => 0 })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sending = Promise.all(Array.from({ length: 40 }, () => service.send(someMail())))
    await eventually('one half is sent while the other waits for a greeting', () => alive.mails.length === 20)
    t.mock.timers.tick(openMs)
    const handovers = await sending
    assert.ok(handovers.every((handover) => handover.kind === 'sent' && handover.host === hostOf(alive)))
    for (let n = 0; n < 20; n++) await service.send(someMail())
    assert.equal(dead.sessions, 20, 'it is no longer used')
    assert.equal(alive.mails.length, 60)
  })

  test('never receive a message that another host may have accepted', async () => {
    const peers = [
      await SmtpPeer.start({ answers: { '.': 'reset' } }),
      await SmtpPeer.start({ answers: { '.': 'reset' } }),
    ]
    const handover = await serviceFor(peers).send(someMail())
    assert.equal(handover.kind === 'unreachable' && handover.mayBeSent, true)
    assert.equal(
      peers.reduce((sum, { mails }) => sum + mails.length, 0),
      1,
    )
  })
})

describe('concurrent messages', () => {
  test('wait for a free session', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { limits: { sessions: 4 } })
    const handovers = await Promise.all(Array.from({ length: 100 }, () => service.send(someMail())))
    assert.ok(handovers.every(({ kind }) => kind === 'sent'))
    assert.equal(peer.sessions, 4)
  })

  test('all fail without waiting when the host is lost', async () => {
    const peer = await SmtpPeer.start({ answers: { MAIL: 'silence' } })
    const service = serviceFor([peer], { limits: { sessions: 2 }, now: () => 0 })
    const kinds: string[] = []
    for (let n = 0; n < 50; n++) void service.send(someMail()).then(({ kind }) => kinds.push(kind))
    await eventually('two wait for an answer', () => mailCommandsOf(peer) === 2)
    peer.cutOff()
    await eventually('all have come back', () => kinds.length === 50)
    assert.ok(kinds.every((kind) => kind === 'unreachable'))
    assert.equal(peer.sessions, 2, 'waiting messages do not try it')
  })

  test('fail when no session is free in time', async (t) => {
    const peer = await SmtpPeer.start({ answers: { '.': 'silence' } })
    const mailMs = 40_000
    const service = serviceFor([peer], { limits: { sessions: 1 }, timeouts: { mailMs } })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sending = Promise.all([service.send(someMail()), service.send(someMail())])
    await eventually('the first is handed over', () => peer.mails.length === 1)
    t.mock.timers.tick(mailMs)
    const [first, second] = await sending
    assert.equal(first.kind === 'unreachable' && first.mayBeSent, true)
    assert.equal(second.kind === 'unreachable' && second.mayBeSent, false)
  })

  test('end when the provider is closed', async () => {
    const answer = Promise.withResolvers<void>()
    const peer = await SmtpPeer.start({ waitsFor: { '.': answer.promise } })
    const service = serviceFor([peer], { limits: { sessions: 1 } })
    const [underWay, waiting] = [service.send(someMail()), service.send(someMail())]
    await eventually('the first waits for its answer', () => peer.mails.length === 1)
    service.close()
    assert.equal((await waiting).kind, 'unreachable')
    answer.resolve()
    assert.equal((await underWay).kind, 'sent', 'messages in transfer are finished')
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    assert.equal(service.isUnavailable, true)
    await eventually('the session is over', () => peer.open === 0)
    assert.equal(peer.commands.at(-1), 'QUIT')
  })
})

test("the queue id is extracted from the MTA's reply", () => {
  for (const [reply, id] of [
    ['250 2.0.0 Ok: queued as 4XbW5L3zqTz9v7R', '4XbW5L3zqTz9v7R'],
    ['250 2.0.0 from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: queued as 1A2B3C', '1A2B3C'],
    ['250 OK id=1rXyzA-000abc-1A', '1rXyzA-000abc-1A'],
    ['250 OK ids=8a5475ccbbc611eda12250ebf67f93bd', '8a5475ccbbc611eda12250ebf67f93bd'],
    ['250 2.0.0 49FAbc123456 Message accepted for delivery', '49FAbc123456'],
    ['250 Ok', null],
    ['', null],
  ] as const) {
    assert.equal(queueIdOf(reply), id, reply)
  }
})
