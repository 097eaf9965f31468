import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import { body, confirmationLink, type Domain, openStage, verify } from './stage.ts'

/**
 * A stranger cannot misuse another customer's domain name or forward mail without consent. A customer leaves, but its
 * domain's MX record still points to Postern; another project adds the name and receives no mail until it has verified
 * the name. A route forwards to an address whose owner has not agreed: until the owner confirms, the address receives
 * only one message, which contains the confirmation link. A forged message claiming to be from a bank is not forwarded.
 */
const stage = await openStage({ settings: { POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.example.net' } })
const { admin } = stage
const reason = 'For the scenario'
await stage.dns.publish([
  { name: 'customer.example.com', type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
  { name: 'bank.example.com', type: 'TXT', value: 'v=spf1 -all' },
  { name: '_dmarc.bank.example.com', type: 'TXT', value: 'v=DMARC1; p=reject' },
])

/** Sends with swaks, as an outside sender. Returns the last reply. */
function sendMail(to: string, from = 'ada@customer.example.com', port = stage.inboundPort): Promise<string> {
  const args = ['--server', '127.0.0.1', '--port', String(port), '--from', from, '--to', to]
  return new Promise((resolve) => {
    execFile('swaks', [...args, '--header', `From: ${from}`], (_error, output) => {
      const replies = output.split('\n').filter((line) => /^<(?:~|-|\*)[*~ ]* +\d{3} /.test(line))
      const last = replies.filter((line) => !/ 221 /.test(line)).at(-1)
      resolve(last?.replace(/^<\S+ +/, '') ?? output)
    })
  })
}

const addDomain = (projectId: number, name: string) =>
  body<Domain>(201, admin.post(`/admin/projects/${projectId}/domains`, { name, mta_provider: 'service' }))

async function addProject(name: string): Promise<number> {
  const users = await body<{ data: { id: number }[] }>(200, admin.get('/admin/users'))
  const wanted = { name, user_id: users.data[0]?.id, plan_id: stage.project.plan_id }
  const { id } = await body<{ id: number }>(201, admin.post('/admin/projects', wanted))
  await body(200, admin.patch(`/admin/projects/${id}`, { allow_service_mta: true, reason }))
  return id
}

const addRoute = (projectId: number, domain: Domain, what: object) =>
  body<{ id: number; forward_confirmed_at: string | null }>(
    201,
    admin.post(`/admin/projects/${projectId}/routing`, {
      ...{ domain_id: domain.id, match: 'catch_all', address: null, endpoint_id: null, forward_to: null },
      ...what,
    }),
  )

describe('the name of a customer who has left', () => {
  it('receives no mail for another project that adds it until that project has verified it', async () => {
    const name = 'left.example.org'
    const former = await addProject('Former customer')
    const held = await verify(stage, admin, former, await addDomain(former, name))
    const route = await addRoute(former, held, { action: 'drop' })
    assert.match(await sendMail(`support@${name}`), /^250/)
    const path = `/admin/projects/${former}`
    await body(204, admin.delete(`${path}/routing/${route.id}`, { reason }))
    await body(204, admin.delete(`${path}/domains/${held.id}`, { reason }))
    await stage.eventually(
      'the project is deleted',
      async () => (await admin.delete(`/projects/${former}`)).status === 204,
    )
    assert.match(await sendMail(`support@${name}`), /^550 5\.1\.1/)

    const stranger = await addProject('Stranger')
    const added = await addDomain(stranger, name)
    await addRoute(stranger, added, { action: 'drop' })
    assert.match(await sendMail(`support@${name}`), /^450 4\.3\.0/)
    const match = await body<{ outcome: string }>(
      200,
      admin.get(`/projects/${stranger}/routing/match?address=support@${name}`),
    )
    assert.equal(match.outcome, 'domain_not_verified')
    await verify(stage, admin, stranger, added)
    assert.match(await sendMail(`support@${name}`), /^250/)
  })
})

describe('a forward', () => {
  const target = 'team@example.net'
  const sales = 'sales@shop.example.org'
  const arrived = () => stage.sink.received.filter(({ to, from }) => to[0] === target && /^SRS0=/.test(from))

  it('sends its target no mail before the confirmation, and the deferred mail afterwards', async () => {
    const peer = await Postfix.open({
      ...{ sinkPort: stage.inboundPort, feedbackPort: stage.intakePort, backoffSeconds: 1 },
    })
    const route = await addRoute(stage.project.id, stage.domain, {
      ...{ match: 'address', address: sales, action: 'forward', forward_to: target },
    })
    assert.equal(route.forward_confirmed_at, null)
    assert.match(await sendMail(sales, 'cy@customer.example.com', peer.port), /^250/)
    await stage.eventually('the message was deferred', async () =>
      (await peer.queue()).some(({ recipients }) => /450 4\.3\.0/.test(recipients[0]?.delay_reason ?? '')),
    )
    const link = await confirmationLink(stage, target)
    assert.equal((await fetch(link)).status, 200)
    assert.match(await sendMail(sales), /^450 4\.3\.0/, 'opening the link does not confirm it')
    assert.deepEqual(arrived(), [])

    assert.equal((await fetch(link, { method: 'POST' })).status, 200)
    assert.match(await sendMail(sales), /^250/)
    await stage.eventually('both messages arrived', () => arrived().length === 2)
    assert.equal((await fetch(link, { method: 'POST' })).status, 404)
  })

  it('rejects mail that fails DMARC under a reject policy', async () => {
    const before = arrived().length
    assert.match(await sendMail(sales, 'security@bank.example.com'), /^550 5\.7\.26/)
    assert.match(await sendMail(sales), /^250/)
    await stage.eventually('the next message arrived', () => arrived().length > before)
    assert.equal(arrived().length, before + 1)
    assert.ok(arrived().every(({ raw }) => !raw.toString().includes('bank.example.com')))
  })
})
