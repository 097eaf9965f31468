import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Delivery } from '../server/src/testing/peers/sink.ts'
import { body, makePlan, openStage } from './stage.ts'

/**
 * The shop has programs that only support SMTP. They submit mail to `postern intake`, with the API key as the password.
 * The programs are swaks, as a simple client, and the shop's own Postfix, which uses Postern as its smart host and
 * queues mail while Postern is unavailable. Submitted mail is treated like any other message: checked, counted, signed,
 * delivered and reported.
 */
const stage = await openStage()
const project = `/admin/projects/${stage.project.id}`
const shopAddress = 'orders@shop.example.org'
const home = await mkdtemp(path.join(tmpdir(), 'postern-swaks-'))
after(() => rm(home, { recursive: true, force: true }))

interface Brought {
  /** The last reply before QUIT. */
  reply: string
  transcript: string
}

/** Submits one message with swaks, by default on the STARTTLS port. */
function swaks(...args: string[]): Promise<Brought> {
  const login = ['--auth', 'PLAIN', '--auth-user', 'postern', '--auth-password', stage.secret, '--tls']
  const server = ['--server', '127.0.0.1', '--port', String(stage.submissionPorts.startTls)]
  const mail = ['--from', shopAddress, '--to', 'anna@example.net', '--ehlo', 'shop.example.org']
  return new Promise((resolve) => {
    execFile(
      'swaks',
      [...server, ...login, ...mail, ...args],
      { maxBuffer: 2 ** 28 },
      (_error, transcript) => {
        const replies = [...transcript.matchAll(/^<[-~*][ *] *(\d{3} .*)$/gm)].map(([, text = '']) => text)
        resolve({ reply: replies.filter((text) => !text.startsWith('221')).at(-1) ?? '', transcript })
      },
    )
  })
}

function idIn({ reply, transcript }: Brought): string {
  const [, id] = /^250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})$/.exec(reply) ?? []
  assert.ok(id !== undefined, transcript)
  return id
}

const delivered = (to: string): Promise<Delivery> => stage.sink.next((delivery) => delivery.to[0] === to)

async function assertAuthentic(delivery: Delivery): Promise<void> {
  const { dkim, spf, dmarc } = await stage.authentication(delivery)
  assert.deepEqual(dkim, [
    { result: 'pass', domain: 'shop.example.org', selector: stage.domain.identity.selector },
  ])
  assert.deepEqual(spf, { result: 'pass', domain: 'bounces.shop.example.org' })
  assert.equal(dmarc.result, 'pass')
}

describe('an SMTP client', () => {
  const tls = ['--no-tls', '--tlsc', '--port', String(stage.submissionPorts.tls)]
  const ways: Record<string, string[]> = {
    'STARTTLS and AUTH PLAIN': [],
    'STARTTLS and AUTH LOGIN': ['--auth', 'LOGIN'],
    'implicit TLS and AUTH PLAIN': tls,
    'implicit TLS and AUTH LOGIN': [...tls, '--auth', 'LOGIN'],
  }
  for (const [n, [way, args]] of Object.entries(ways).entries()) {
    it(`submits mail by ${way}, and the mail passes DKIM, SPF and DMARC and has events`, async () => {
      const to = `anna${n}@example.net`
      const id = idIn(await swaks(...args, '--to', to, '--header', 'X-Postern-Tag: order'))
      const delivery = await delivered(to)
      await assertAuthentic(delivery)
      assert.match(delivery.from, /^bounce-.*@bounces\.shop\.example\.org$/)
      await stage.settled(id, 'delivered')
      const types = (await stage.events(id)).map(({ type }) => type)
      for (const type of ['message.accepted', 'message.sent', 'message.delivered'])
        assert.ok(types.includes(type))
    })
  }

  it('submits a message with all its recipients, and Bcc recipients are not revealed', async () => {
    const id = idIn(
      await swaks(
        ...['--to', 'bea@example.net,carl@example.net,dora@example.net', '--h-To', 'bea@example.net'],
        ...['--header', 'Cc: carl@example.net', '--header', 'Bcc: dora@example.net'],
      ),
    )
    const { recipients } = await stage.settled(id, 'delivered')
    assert.deepEqual(
      recipients.map(({ address, kind }) => `${kind} ${address}`),
      ['to bea@example.net', 'cc carl@example.net', 'bcc dora@example.net'],
    )
    for (const { address } of recipients) {
      const { raw, to } = await delivered(address)
      assert.deepEqual(to, [address])
      // Postfix adds the recipient in a header field above this one.
      assert.doesNotMatch(raw.toString().slice(raw.indexOf('DKIM-Signature:')), /dora|^Bcc/im)
    }
  })

  it('is rejected with a wrong key, and cannot submit without TLS', async () => {
    const wrong = await swaks('--auth-password', `${stage.secret.slice(0, -1)}_`)
    assert.match(wrong.reply, /^535 5\.7\.8/)
    const clear = await swaks('--no-tls')
    assert.doesNotMatch(clear.transcript, /AUTH PLAIN \S|queued as/)
  })

  it('is rejected if the domain is unverified or the message is too large', async () => {
    const { reply } = await swaks('--from', 'orders@elsewhere.example.org')
    assert.match(reply, /^550 5\.7\.1 .*elsewhere\.example\.org/)
    const file = path.join(home, 'large')
    await writeFile(file, `From: ${shopAddress}\n\n${`${'x'.repeat(900)}\n`.repeat(29_500)}`)
    assert.match((await swaks('--data', `@${file}`)).reply, /^552 5\.3\.4/)
  })

  it('gets a temporary failure when the quota is used up, and succeeds when it is raised', async () => {
    const { id: admin_plan_id } = await makePlan(stage.admin, { name: 'None', max_mails_per_day: 0 })
    await body(200, stage.admin.patch(project, { admin_plan_id, reason: 'Unpaid' }))
    assert.match((await swaks()).reply, /^452 4\.7\.1 The plan allows 0 messages per day/)
    await body(200, stage.admin.patch(project, { admin_plan_id: null, reason: 'Paid' }))
    idIn(await swaks('--to', 'emil@example.net'))
    await delivered('emil@example.net')
  })
})

describe("the shop's own Postfix", () => {
  it('queues its mail while Postern is unavailable, and submits it afterwards', async () => {
    const smartHost = await Postfix.open({
      sinkPort: stage.submissionPorts.startTls,
      feedbackPort: stage.intakePort,
      login: { user: 'postern', password: stage.secret },
      delayWarningSeconds: 3600,
    })
    await stage.processes.intake.stop()
    const local = ['--server', '127.0.0.1', '--port', String(smartHost.port), '--from', shopAddress]
    const mails = 5
    for (let n = 0; n < mails; n++) {
      await new Promise((resolve, reject) => {
        const mail = ['--to', `fritz${n}@example.net`, '--header', `Subject: Mail ${n}`]
        execFile('swaks', [...local, ...mail], (error) => (error ? reject(error) : resolve(undefined)))
      })
    }
    await stage.eventually(
      'all of it waits',
      async () =>
        (await smartHost.queue()).filter(({ recipients }) => recipients[0]?.delay_reason !== undefined)
          .length === mails,
    )
    await stage.startIntake()
    for (let n = 0; n < mails; n++) {
      const delivery = await delivered(`fritz${n}@example.net`).catch(async ({ message }: Error) => {
        const log = (await smartHost.log()).split('\n').slice(-20).join('\n')
        assert.fail(`${message}. It waits: ${JSON.stringify(await smartHost.queue())}. The log ends:\n${log}`)
      })
      await assertAuthentic(delivery)
      assert.match(delivery.raw.toString(), new RegExp(`^Subject: Mail ${n}\r$`, 'm'))
    }
    await stage.eventually('the queue is empty', async () => (await smartHost.queue()).length === 0)
    const log = await smartHost.log()
    const ids = [...log.matchAll(/250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})/g)].map(([, id = '']) => id)
    assert.equal(new Set(ids).size, mails)
    for (const id of ids) await stage.settled(id, 'delivered')
    assert.equal(stage.sink.received.filter(({ to }) => to[0]?.startsWith('fritz')).length, mails)
  })
})
