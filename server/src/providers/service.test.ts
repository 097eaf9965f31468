import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanUp } from '../testing/cleanup.ts'
import { someMail } from '../testing/mail-samples.ts'
import { SmtpPeer } from '../testing/smtp-peer.ts'
import { queueIdOf, type ServiceOptions, ServiceProvider, smtpAddressOf } from './service.ts'

function serviceFor(peers: readonly SmtpPeer[], options: Partial<ServiceOptions> = {}): ServiceProvider {
  const service = new ServiceProvider({
    hosts: peers.map(({ url }) => smtpAddressOf(new URL(url))),
    name: 'postern.example',
    ...options,
    timeouts: { openMs: 400, silenceMs: 400, mailMs: 1500, idleMs: 1000, ...options.timeouts },
    limits: { firstRestMs: 200, longestRestMs: 800, ...options.limits },
  })
  cleanUp(async () => service.close())
  return service
}

const hostOf = ({ url }: SmtpPeer) => url.replace('smtp://', '')

test('the own fleet takes every name, keeps it nowhere, and gives no tokens', async () => {
  const service = serviceFor([])
  assert.equal(service.name, 'service')
  assert.deepEqual(service.place, { account: null, region: null })
  const none = { dkimTokens: [], dkimZone: null }
  assert.deepEqual(await service.register(), none)
  assert.deepEqual(await service.look(), { isRegistered: true, isVerified: true, ...none, detail: null })
  await service.deregister()
})

describe('a mail handed over', () => {
  test('is taken as it is, with what notifications need, and is known by the name the MTA gave it', async () => {
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

  test('goes through a session that is there already, but not endlessly', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { limits: { mailsPerSession: 3 } })
    for (let n = 0; n < 7; n++) assert.equal((await service.send(someMail())).kind, 'sent')
    assert.equal(peer.mails.length, 7)
    assert.equal(peer.sessions, 3)
  })

  test('is refused as the MTA says, for good or for now, and the next one goes the same way', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    for (const [verb, reply, isLasting, status] of [
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
          isLasting,
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

  test('is refused on this side when it is larger than the MTA takes', async () => {
    const peer = await SmtpPeer.start({ extensions: ['SIZE 1000'] })
    const handover = await serviceFor([peer]).send(someMail({ raw: Buffer.alloc(2000, 'x') }))
    assert.equal(handover.kind === 'refused' && handover.isLasting && handover.status, '5.3.4')
    assert.equal(peer.commands.filter((line) => line.startsWith('MAIL')).length, 0)
  })

  test('is never handed over with an envelope that is more than two addresses', async () => {
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
          handover.kind === 'refused' && handover.isLasting && handover.host === null,
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

  test('asks for RFC 6531 where an address needs it, in the envelope or in the header', async () => {
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
    await sleep(20)
    const refused = await service.send(someMail({ envelope }))
    assert.ok(refused.kind === 'refused' && refused.isLasting && refused.status === '5.6.7')
    assert.equal((await service.send(someMail())).kind, 'sent')
  })

  test('of 8 bits goes as it is where that is taken, and nowhere else', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    const raw = Buffer.from('From: ada@example.com\r\n\r\nGr\u00fc\u00dfe\r\n')
    assert.equal((await service.send(someMail({ raw }))).kind, 'sent')
    assert.match(peer.mails[0]?.from ?? '', / BODY=8BITMIME /)
    assert.ok(peer.mails[0]?.raw.includes(raw.subarray(0, -2)))

    peer.script = { extensions: ['PIPELINING'] }
    peer.cutOff()
    await sleep(20)
    const refused = await service.send(someMail({ raw }))
    assert.ok(refused.kind === 'refused' && refused.isLasting && refused.status === '5.6.3')
    assert.equal(peer.mails.length, 1)
  })
})

describe('a host that cannot be reached', () => {
  test('is told of, whatever it does instead of answering, in time', async () => {
    for (const [script, mayBeSent, detail] of [
      [{ greeting: 'silence' }, false, /greeting/i],
      [{ greeting: 'close' }, false, /closed/],
      [{ greeting: 'reset' }, false, /ECONNRESET|closed/],
      [{ greeting: '554 5.3.2 No service' }, false, /554 5\.3\.2/],
      [{ greeting: '421 4.3.2 Later' }, false, /421/],
      [{ octetMs: 60 }, false, /greeting/i],
      [{ answers: { EHLO: 'silence' } }, false, /within|Timeout/],
      [{ answers: { MAIL: 'silence' } }, false, /Timeout/],
      [{ answers: { RCPT: 'reset' } }, false, /ECONNRESET|closed/],
      [{ answers: { RCPT: '421 4.3.2 Shutting down' } }, false, /421/],
      [{ answers: { DATA: 'close' } }, false, /closed/],
      [{ answers: { BODY: 'reset' } }, true, /ECONNRESET|closed/],
      [{ answers: { BODY: 'close' } }, true, /closed/],
      [{ answers: { '.': 'reset' } }, true, /ECONNRESET|closed/],
      [{ answers: { '.': 'close' } }, true, /closed/],
      [{ answers: { '.': 'silence' } }, true, /Timeout/],
      [{ answers: { '.': '421 4.3.0 Not taken' } }, false, /421/],
    ] as const) {
      const peer = await SmtpPeer.start(script)
      const start = performance.now()
      const handover = await serviceFor([peer]).send(someMail())
      const what = JSON.stringify(script)
      assert.ok(handover.kind === 'unreachable', `${what}: ${JSON.stringify(handover)}`)
      assert.equal(handover.mayBeSent, mayBeSent, what)
      assert.match(handover.detail, detail, what)
      assert.equal(handover.host, hostOf(peer))
      assert.ok(performance.now() - start < 2000, what)
    }
  })

  test('is told of when it answers one octet at a time and would take for ever', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { timeouts: { mailMs: 600 } })
    await service.send(someMail())
    peer.script = { octetMs: 100 }
    const start = performance.now()
    const handover = await service.send(someMail())
    assert.match(handover.kind === 'unreachable' ? handover.detail : '', /^no end within \d+ ms$/)
    assert.ok(performance.now() - start < 900)
  })

  test('may end a session that nobody uses, without being thought ill of', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer])
    for (let n = 0; n < 3; n++) {
      assert.equal((await service.send(someMail())).kind, 'sent')
      peer.cutOff()
    }
    assert.equal((await service.send(someMail())).kind, 'sent')
    peer.script = { answers: { MAIL: '421 4.4.2 Idle for too long' }, delayMs: { greeting: 50 } }
    const begun = service.send(someMail())
    await sleep(25)
    peer.script = {}
    assert.equal((await begun).kind, 'sent')
    assert.equal(service.isOpen, false)
    assert.equal(peer.mails.length, 5)
  })

  test('is left alone for a growing while, then tried with one mail, and then is back', async () => {
    const peer = await SmtpPeer.start()
    const service = serviceFor([peer], { limits: { firstRestMs: 400, longestRestMs: 800 } })
    await service.send(someMail())
    await peer.stop()
    const [sessions] = [peer.sessions]
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    assert.equal(service.isOpen, true)
    const rested = await service.send(someMail())
    assert.deepEqual(rested, {
      kind: 'unreachable',
      host: null,
      detail: 'no MTA can be reached; the next try is not due yet',
      mayBeSent: false,
    })
    await sleep(520)
    assert.equal(service.isOpen, false, 'its first rest is over')
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    await sleep(350)
    assert.equal(service.isOpen, true, 'the second rest is longer')
    await sleep(650)
    assert.equal(service.isOpen, false)

    peer.script = { delayMs: { greeting: 100 } }
    await peer.listen()
    const handovers = await Promise.all(Array.from({ length: 10 }, () => service.send(someMail())))
    assert.equal(handovers.filter(({ kind }) => kind === 'sent').length, 1, 'one mail tries it')
    assert.equal(peer.sessions, sessions + 1)
    assert.equal(service.isOpen, false)
    const then = await Promise.all(Array.from({ length: 10 }, () => service.send(someMail())))
    assert.ok(then.every(({ kind }) => kind === 'sent'))
  })

  test('rests once for one failure, however many mails it took with it', async () => {
    const peer = await SmtpPeer.start({ delayMs: { MAIL: 50 } })
    const service = serviceFor([peer], { limits: { longestRestMs: 10_000 } })
    const begun = Array.from({ length: 10 }, () => service.send(someMail()))
    await sleep(25)
    await peer.stop()
    for (const { kind } of await Promise.all(begun)) assert.equal(kind, 'unreachable')
    assert.equal(service.isOpen, true)
    await sleep(300)
    assert.equal(service.isOpen, false)
  })

  test('rests when it has no room, but not because it does not like a mail', async () => {
    const peer = await SmtpPeer.start({ answers: { RCPT: '451 4.3.0 Look-up failed' } })
    const service = serviceFor([peer])
    assert.equal((await service.send(someMail())).kind, 'refused')
    assert.equal(service.isOpen, false)
    peer.script = { answers: { MAIL: '452 4.3.1 Insufficient system storage' } }
    const handover = await service.send(someMail())
    assert.equal(handover.kind === 'refused' && handover.isLasting, false)
    assert.equal(service.isOpen, true)
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

  test('go on when one of them is gone, and no mail notices', async () => {
    const [alive, dead] = [await SmtpPeer.start(), await SmtpPeer.start({ greeting: 'silence' })]
    const service = serviceFor([dead, alive], { limits: { firstRestMs: 5000, longestRestMs: 5000 } })
    const start = performance.now()
    const handovers = await Promise.all(Array.from({ length: 40 }, () => service.send(someMail())))
    assert.ok(handovers.every((handover) => handover.kind === 'sent' && handover.host === hostOf(alive)))
    assert.ok(performance.now() - start < 1500)
    const sessions = dead.sessions
    for (let n = 0; n < 20; n++) await service.send(someMail())
    assert.equal(dead.sessions, sessions, 'it is left alone')
    assert.equal(alive.mails.length, 60)
  })

  test('never get a mail that another of them may have taken', async () => {
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

describe('many mails at once', () => {
  test('wait for a session, and each gets one', async () => {
    const peer = await SmtpPeer.start({ delayMs: { '.': 5 } })
    const service = serviceFor([peer], { limits: { sessions: 4 } })
    const handovers = await Promise.all(Array.from({ length: 100 }, () => service.send(someMail())))
    assert.ok(handovers.every(({ kind }) => kind === 'sent'))
    assert.equal(peer.sessions, 4)
  })

  test('are all told when the host is lost under them, and nobody waits for nothing', async () => {
    const peer = await SmtpPeer.start({ answers: { MAIL: 'silence' } })
    const service = serviceFor([peer], { limits: { sessions: 2 } })
    const start = performance.now()
    const handovers = await Promise.all(Array.from({ length: 50 }, () => service.send(someMail())))
    assert.ok(handovers.every(({ kind }) => kind === 'unreachable'))
    assert.ok(performance.now() - start < 1000)
  })

  test('are told when there is no room for too long', async () => {
    const peer = await SmtpPeer.start({ delayMs: { '.': 500 } })
    const service = serviceFor([peer], {
      limits: { sessions: 1 },
      timeouts: { mailMs: 300, silenceMs: 1000 },
    })
    const [first, second] = await Promise.all([service.send(someMail()), service.send(someMail())])
    assert.equal(first.kind === 'unreachable' && first.mayBeSent, true)
    assert.equal(second.kind === 'unreachable' && second.mayBeSent, false)
  })

  test('end with the provider', async () => {
    const peer = await SmtpPeer.start({ delayMs: { '.': 100 } })
    const service = serviceFor([peer], { limits: { sessions: 1 } })
    const [underWay, waiting] = [service.send(someMail()), service.send(someMail())]
    await sleep(50)
    service.close()
    assert.equal((await underWay).kind, 'sent', 'what is under way is finished')
    assert.equal((await waiting).kind, 'unreachable')
    assert.equal((await service.send(someMail())).kind, 'unreachable')
    assert.equal(service.isOpen, true)
    await sleep(50)
    assert.equal(peer.open, 0)
    assert.equal(peer.commands.at(-1), 'QUIT')
  })
})

test('the name that an MTA gave a mail is found in its reply', () => {
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
