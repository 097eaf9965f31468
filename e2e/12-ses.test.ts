import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { resolverAt } from '../server/src/testing/peers/dns.ts'
import { type SesEventType, sesEvent } from '../server/src/testing/peers/ses-events.ts'
import type { OutboundMail } from '../server/src/testing/peers/ses-outbound.ts'
import { publishSns } from '../server/src/testing/peers/sns-peer.ts'
import { body, type Domain, messageIdOf, openStage } from './stage.ts'

/**
 * A domain that sends through Amazon SES. SES accepts its mail and reports the results through SNS, sometimes twice,
 * late or out of order. Even if responses are lost or workers crash during a call, no message is submitted to SES
 * twice: either SES accepted it once and reports the result, or the message fails with a note that it may have been
 * sent.
 */
const stage = await openStage()
const { ses, sns, apiUrl } = stage
const name = 'news.example.org'
const domain = await openDomain()

async function openDomain(): Promise<Domain> {
  const path = `/admin/projects/${stage.project.id}/domains`
  const { id } = await body<Domain>(201, stage.admin.post(path, { name, mta_provider: 'ses' }))
  const registered = await stage.eventually(`${name} is registered with SES`, async () => {
    const now = await body<Domain>(200, stage.admin.get(`${path}/${id}`))
    return now.identity.state === 'registered' && now
  })
  await stage.dns.publish(registered.dns_records)
  assert.ok(await ses.checkDns(name, resolverAt(stage.dns.server)), 'SES finds its records')
  return stage.verify({ ...registered, dns_records: [] })
}

let numbered = 0
const newAddress = () => `reader${++numbered}@example.net`
const send = (to: string) => stage.send({ from: `News <news@${name}>`, to: [to] })
const acceptedFor = (to: string): OutboundMail[] => ses.mails.filter((mail) => mail.to === to)
const firstAccepted = (to: string) =>
  stage.eventually(`SES has the message to ${to}`, () => acceptedFor(to)[0])

const publishReport = (mail: OutboundMail, type: SesEventType, changes: object = {}) =>
  publishSns(apiUrl, sns.notification(sesEvent(mail, type, changes)))

const typesOf = async (id: string) => (await stage.events(id)).map(({ type }) => type)
const queue = async () => (await stage.admin.get(`/admin/projects/${stage.project.id}/queue`)).body
const isAwaited = (count: number) =>
  stage.eventually(`${count} messages await a report`, async () => (await queue()).awaiting === count)

describe('a domain that uses SES', () => {
  it('is verified, and its mail is submitted to SES without a signature from Postern', async () => {
    assert.equal(domain.status, 'verified')
    const to = newAddress()
    const id = await send(to)
    const mail = await firstAccepted(to)
    await stage.settled(id, 'sent')
    assert.ok(messageIdOf(mail.raw).startsWith(`<${id}@${name}`))
    assert.doesNotMatch(mail.raw.toString(), /^(DKIM-Signature|Bcc):/im)
    assert.equal(stage.sink.received.length, 0)
  })

  it('processes delivery reports that are repeated, late and out of order', async () => {
    const to = newAddress()
    const id = await send(to)
    const mail = await firstAccepted(to)
    const messages = (['Delivery', 'Send', 'Open'] as const).map((type) =>
      sns.notification(sesEvent(mail, type)),
    )
    for (const message of [...messages, ...messages]) await publishSns(apiUrl, message)
    await stage.settled(id, 'delivered')
    assert.deepEqual((await typesOf(id)).sort(), ['message.accepted', 'message.delivered', 'message.sent'])
  })

  it('suppresses addresses that bounce or complain', async () => {
    const [gone, angry] = [newAddress(), newAddress()]
    const [bounced, complained] = [await send(gone), await send(angry)]
    await publishReport(await firstAccepted(gone), 'Bounce')
    await publishReport(await firstAccepted(angry), 'Delivery')
    await publishReport(await firstAccepted(angry), 'Complaint')
    assert.match((await stage.settled(bounced, 'bounced')).recipients[0]?.diagnostic ?? '', /user unknown/)
    await stage.settled(complained, 'complained')
    const { data } = await body<{ data: { address: string; reason: string }[] }>(
      200,
      stage.shop.get('/suppressions'),
    )
    assert.deepEqual(Object.fromEntries(data.map(({ address, reason }) => [address, reason])), {
      [gone]: 'bounce',
      [angry]: 'complaint',
    })
    await stage.settled(await send(gone), 'suppressed')
    assert.equal(acceptedFor(gone).length, 1)
  })
})

describe('a message that SES temporarily rejects', () => {
  it('is sent later, once, without an event for the delay', async () => {
    const to = newAddress()
    ses.failNext('send', 'too_many_requests')
    ses.failNext('send', 'sending_paused')
    const id = await send(to)
    await stage.settled(id, 'sent')
    assert.equal(acceptedFor(to).length, 1)
    assert.deepEqual(await typesOf(id), ['message.accepted', 'message.sent'])
    assert.ok(stage.processes.worker.lines.some((line) => line.includes('SES unavailable')))
  })
})

describe('a message with an unknown SES result', () => {
  it('is completed by the report from SES', async () => {
    const to = newAddress()
    ses.failNext('send', 'lose_answer')
    const id = await send(to)
    await firstAccepted(to)
    await isAwaited(1)
    assert.equal((await stage.message(id)).status, 'queued')
    await publishReport(acceptedFor(to)[0] as OutboundMail, 'Delivery')
    await stage.settled(id, 'delivered')
    await isAwaited(0)
    assert.deepEqual((await typesOf(id)).sort(), ['message.accepted', 'message.delivered', 'message.sent'])
    assert.equal(acceptedFor(to).length, 1)
  })

  it('fails after an hour without a report, and is not sent again', async () => {
    const to = newAddress()
    ses.failNext('send', 'lose_answer')
    const id = await send(to)
    await firstAccepted(to)
    await isAwaited(1)
    await stage.replaceWorker(61)
    const failed = await stage.settled(id, 'failed')
    assert.match(failed.recipients[0]?.diagnostic ?? '', /may have been sent/)
    assert.equal(acceptedFor(to).length, 1)
  })
})

describe('a worker that crashes during a call', () => {
  it('leaves a message that SES accepted to be completed by the report from SES', async () => {
    const to = newAddress()
    ses.hooks.onEffect = ({ mail }) => mail?.to === to && stage.processes.worker.kill()
    const id = await send(to)
    await stage.processes.worker.exited
    delete ses.hooks.onEffect
    await stage.replaceWorker(2)
    await isAwaited(1)
    await publishReport((await firstAccepted(to)) as OutboundMail, 'Send')
    await stage.settled(id, 'sent')
    assert.equal(acceptedFor(to).length, 1)
  })

  it('leaves a message that SES did not accept to fail, with a note that it may have been sent', async () => {
    const to = newAddress()
    ses.hooks.onRequest = ({ mail }) => {
      if (mail?.to !== to) return
      stage.processes.worker.kill()
      throw new Error('killed')
    }
    const id = await send(to)
    await stage.processes.worker.exited
    delete ses.hooks.onRequest
    await stage.replaceWorker(2)
    await isAwaited(1)
    await stage.replaceWorker(61)
    const failed = await stage.settled(id, 'failed')
    assert.match(failed.recipients[0]?.diagnostic ?? '', /may have been sent/)
    assert.equal(acceptedFor(to).length, 0)
  })

  it('sends no message twice, however often it crashes', async () => {
    const ids = new Map<string, string>()
    // The worker crashes while it holds leases on a whole wave of messages: SES has accepted some of them but not the
    // others.
    for (let wave = 0; wave < 3; wave++) {
      const recipients = Array.from({ length: 20 }, newAddress)
      for (let n = 0; n < recipients.length; n++) ses.failNext('send', { answerDelayMs: 150 })
      await Promise.all(recipients.map(async (to) => ids.set(to, await send(to))))
      await stage.eventually('SES has some of them', () => recipients.flatMap(acceptedFor).length > 0)
      await stage.replaceWorker(2)
    }
    const recipients = [...ids.keys()]
    // Messages leased by a crashed worker await a report; all others are sent.
    await stage.eventually('the queue is empty', async () => {
      const { waiting, leaving } = await queue()
      return waiting === 0 && leaving === 0
    })
    for (const mail of recipients.flatMap(acceptedFor)) await publishReport(mail, 'Delivery')
    await stage.replaceWorker(61)
    await isAwaited(0)
    for (const [to, id] of ids) {
      const taken = acceptedFor(to).length
      assert.ok(taken <= 1, `${to} has it ${taken} times`)
      await stage.settled(id, taken === 1 ? 'delivered' : 'failed')
    }
  })
})
