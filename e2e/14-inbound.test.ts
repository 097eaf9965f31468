import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { arcOf } from '../server/src/testing/expectations/mail-authentication.ts'
import { verified } from '../server/src/testing/expectations/verify-webhook.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import { startReceiver } from '../server/src/testing/peers/webhook-receiver.ts'
import { body, confirmationLink, openStage } from './stage.ts'

/**
 * The shop receives mail. Its customers write to shop.example.org, whose MX is Postern. Each route applies as soon as
 * it is created. One customer uses swaks; another has its own Postfix, which queues and retries mail that it could not
 * deliver.
 */
const receiver = await startReceiver()
const stage = await openStage({
  settings: { ...receiver.settings, POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.example.net' },
})
const project = `/admin/projects/${stage.project.id}`
const reason = 'The shop asked for it'
const port = stage.inboundPort

const at = (local: string, name = 'shop.example.org') => `${local}@${name}`

interface Route {
  id: number
}

async function route(local: string | null, what: object): Promise<Route> {
  const match =
    local === null ? { match: 'catch_all', address: null } : { match: 'address', address: at(local) }
  return body<Route>(
    201,
    stage.admin.post(`${project}/routing`, {
      ...{ domain_id: stage.domain.id, endpoint_id: null, forward_to: null, ...match, ...what },
    }),
  )
}

const { resource: endpoint, secret } = await body<{ resource: { id: number }; secret: string }>(
  201,
  stage.admin.post(`${project}/endpoints`, {
    ...{ name: 'Tickets', url: `${receiver.url}/mail`, events: [], is_active: true },
  }),
)
await stage.dns.publish([{ name: 'customer.example.com', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' }])

/** Sends with swaks, as an outside sender. Returns the last reply. */
function sendMail(to: string, ...args: string[]): Promise<string> {
  const usual = [
    '--server',
    '127.0.0.1',
    '--port',
    String(port),
    '--from',
    'ada@customer.example.com',
    '--tls',
  ]
  return new Promise((resolve) => {
    execFile('swaks', [...usual, '--to', to, ...args], (_error, output) => {
      const replies = output.split('\n').filter((line) => /^<(?:~|-|\*)[*~ ]* +\d{3} /.test(line))
      resolve(
        replies
          .filter((line) => !/ 221 /.test(line))
          .at(-1)
          ?.replace(/^<\S+ +/, '') ?? output,
      )
    })
  })
}

interface Received {
  envelope: { from: string; to: string }
  subject: string
  text: string
  authentication: { spf: { result: string } }
}

/** The events that the endpoint has received for an address, with verified signatures. */
const got = (to: string): Received[] =>
  receiver.got
    .map((one) => verified(secret, one))
    .filter(({ type }) => type === 'inbound.received')
    .map(({ data }) => data as unknown as Received)
    .filter(({ envelope }) => envelope.to === to)

const receivedEvent = (to: string): Promise<Received> =>
  stage.eventually(`the endpoint has mail to ${to}`, () => got(to)[0])

await route('support', { action: 'endpoint', endpoint_id: endpoint.id })
await route('sales', { action: 'forward', forward_to: 'team@example.net' })
await fetch(await confirmationLink(stage, 'team@example.net'), { method: 'POST' })
await route('noreply', { action: 'reject' })
await route('trash', { action: 'drop' })
const catchAll = await route(null, { action: 'endpoint', endpoint_id: endpoint.id })

describe('mail to the shop', () => {
  it("is delivered to its endpoint, with the sender's authentication results", async () => {
    assert.match(
      await sendMail(at('support'), '--header', 'Subject: Help', '--body', 'Where is it?'),
      /^250 2\.0\.0/,
    )
    const data = await receivedEvent(at('support'))
    assert.deepEqual(
      [data?.subject, data?.text.trim(), data?.authentication.spf.result, data?.envelope.from],
      ['Help', 'Where is it?', 'pass', 'ada@customer.example.com'],
    )
  })

  it('is rejected, or accepted and dropped, according to its route', async () => {
    assert.match(await sendMail(at('noreply')), /^550 5\.7\.1/)
    assert.match(await sendMail(at('trash')), /^250/)
    assert.deepEqual(got(at('trash')), [])
    assert.match(await sendMail(at('x', 'nobody.example.org')), /^550 5\.1\.1/)
  })

  it('matches the catch-all if its address has no route, and the API returns that match', async () => {
    assert.match(await sendMail(at('anybody')), /^250/)
    assert.ok(await receivedEvent(at('anybody')))
    const match = await body<{ outcome: string; route: Route }>(
      200,
      stage.admin.get(`${project}/routing/match?address=${at('anybody')}`),
    )
    assert.deepEqual([match.outcome, match.route.id], ['endpoint', catchAll.id])
  })

  it('is forwarded through the MTA, with a rewritten sender and an intact ARC chain', async () => {
    assert.match(await sendMail(at('sales'), '--header', 'Subject: An offer'), /^250/)
    const delivery = await stage.sink.next(
      ({ to, from }) => to[0] === 'team@example.net' && from.startsWith('SRS0='),
    )
    assert.match(delivery.from, /^SRS0=.{8}=..=customer\.example\.com=ada@bounces\.shop\.example\.org$/)
    assert.match(delivery.raw.toString(), /^Subject: An offer\r$/m)
    assert.deepEqual(await arcOf(delivery.raw, stage.dns.server), {
      ...{ result: 'pass', domain: 'shop.example.org', spf: 'pass' },
    })
  })

  it('is bounced to its sender if it cannot be forwarded', async () => {
    stage.sink.treat('team@example.net', { at: 'rcpt', answer: '550 5.1.1 No such user', times: 1 })
    assert.match(await sendMail(at('sales'), '--from', 'bo@customer.example.com'), /^250/)
    const report = await stage.sink.next(({ to }) => to[0] === 'bo@customer.example.com')
    assert.equal(report.from, '')
    assert.match(report.raw.toString(), /team@example\.net/)
  })
})

describe("a customer's own Postfix", () => {
  it('retries while the shop is locked, and reaches its addresses after a rename', async () => {
    const peer = await Postfix.open({ sinkPort: port, feedbackPort: stage.intakePort, backoffSeconds: 1 })
    const send = (to: string) =>
      new Promise((resolve, reject) => {
        const args = [
          '--server',
          '127.0.0.1',
          '--port',
          String(peer.port),
          '--from',
          'cy@customer.example.com',
        ]
        execFile('swaks', [...args, '--to', to], (error) => (error ? reject(error) : resolve(undefined)))
      })
    await body(200, stage.admin.patch(project, { is_locked: true, reason }))
    await send(at('support+postfix'))
    await stage.eventually('the message was deferred', async () =>
      (await peer.queue()).some(({ recipients }) => /450 4\.3\.0/.test(recipients[0]?.delay_reason ?? '')),
    )
    await body(200, stage.admin.patch(project, { is_locked: false, reason }))
    await stage.eventually('the retry succeeded', () => got(at('support+postfix'))[0])

    await body(
      200,
      stage.admin.patch(`${project}/domains/${stage.domain.id}`, {
        ...{ name: 'store.example.org', preserve_local_parts: true, reason },
      }),
    )
    assert.match(await sendMail(at('support')), /^550 5\.1\.1/)
    assert.match(await sendMail(at('support', 'store.example.org')), /^250/)
    assert.ok(await receivedEvent(at('support', 'store.example.org')))
  })
})
