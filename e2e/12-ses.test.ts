import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { resolverAt } from '../server/src/testing/peers/dns.ts'
import { type SesEventType, sesEvent } from '../server/src/testing/peers/ses-events.ts'
import type { OutboundMail } from '../server/src/testing/peers/ses-outbound.ts'
import { publishSns } from '../server/src/testing/peers/sns-peer.ts'
import { body, type Domain, messageIdOf, openStage } from './stage.ts'

/**
 * A domain that sends by Amazon SES. SES takes its mail and tells by SNS what became of it: some of it twice, late, or
 * in no order. Answers get lost and workers die in the middle of a call, and still no mail is given to SES twice: it was
 * taken once and SES tells so, or it has failed and says that it may have been sent.
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
  assert.ok(await ses.checkDns(name, resolverAt(stage.dns.server)), 'SES sees its records')
  return stage.verify({ ...registered, dns_records: [] })
}

let numbered = 0
const newAddress = () => `reader${++numbered}@example.net`
const send = (to: string) => stage.send({ from: `News <news@${name}>`, to: [to] })
const takenFor = (to: string): OutboundMail[] => ses.mails.filter((mail) => mail.to === to)
const oneTaken = (to: string) => stage.eventually(`SES has the mail to ${to}`, () => takenFor(to)[0])

const told = (mail: OutboundMail, type: SesEventType, changes: object = {}) =>
  publishSns(apiUrl, sns.notification(sesEvent(mail, type, changes)))

const typesOf = async (id: string) => (await stage.events(id)).map(({ type }) => type)
const queue = async () => (await stage.admin.get(`/admin/projects/${stage.project.id}/queue`)).body
const isAwaited = (count: number) =>
  stage.eventually(`${count} mails are awaited`, async () => (await queue()).awaiting === count)

describe('a domain of SES', () => {
  it('is verified, and its mail is given to SES unsigned by us', async () => {
    assert.equal(domain.status, 'verified')
    const to = newAddress()
    const id = await send(to)
    const mail = await oneTaken(to)
    await stage.settled(id, 'sent')
    assert.ok(messageIdOf(mail.raw).startsWith(`<${id}@${name}`))
    assert.doesNotMatch(mail.raw.toString(), /^(DKIM-Signature|Bcc):/im)
    assert.equal(stage.sink.received.length, 0)
  })

  it('hears that mail was delivered, told twice, late and in the wrong order', async () => {
    const to = newAddress()
    const id = await send(to)
    const mail = await oneTaken(to)
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
    await told(await oneTaken(gone), 'Bounce')
    await told(await oneTaken(angry), 'Delivery')
    await told(await oneTaken(angry), 'Complaint')
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
    assert.equal(takenFor(gone).length, 1)
  })
})

describe('SES that will not take a mail now', () => {
  it('gets it later, once, and nobody is told of a delay', async () => {
    const to = newAddress()
    ses.failNext('send', 'too_many_requests')
    ses.failNext('send', 'sending_paused')
    const id = await send(to)
    await stage.settled(id, 'sent')
    assert.equal(takenFor(to).length, 1)
    assert.deepEqual(await typesOf(id), ['message.accepted', 'message.sent'])
    assert.ok(stage.processes.worker.lines.some((line) => line.includes('SES unavailable')))
  })
})

describe('mail of which nobody knows whether SES has it', () => {
  it('is ended by what SES tells', async () => {
    const to = newAddress()
    ses.failNext('send', 'lose_answer')
    const id = await send(to)
    await oneTaken(to)
    await isAwaited(1)
    assert.equal((await stage.message(id)).status, 'queued')
    await told(takenFor(to)[0] as OutboundMail, 'Delivery')
    await stage.settled(id, 'delivered')
    await isAwaited(0)
    assert.deepEqual((await typesOf(id)).sort(), ['message.accepted', 'message.delivered', 'message.sent'])
    assert.equal(takenFor(to).length, 1)
  })

  it('has failed after an hour without a word, and was not sent again', async () => {
    const to = newAddress()
    ses.failNext('send', 'lose_answer')
    const id = await send(to)
    await oneTaken(to)
    await isAwaited(1)
    await stage.replaceWorker(61)
    const failed = await stage.settled(id, 'failed')
    assert.match(failed.recipients[0]?.diagnostic ?? '', /may have been sent/)
    assert.equal(takenFor(to).length, 1)
  })
})

describe('a worker that dies in the middle of a call', () => {
  it('leaves mail that SES has taken to what SES tells', async () => {
    const to = newAddress()
    ses.hooks.onEffect = ({ mail }) => mail?.to === to && stage.processes.worker.kill()
    const id = await send(to)
    await stage.processes.worker.exited
    delete ses.hooks.onEffect
    await stage.replaceWorker(2)
    await isAwaited(1)
    await told((await oneTaken(to)) as OutboundMail, 'Send')
    await stage.settled(id, 'sent')
    assert.equal(takenFor(to).length, 1)
  })

  it('leaves mail that SES has not taken to fail, and says that it may have been sent', async () => {
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
    assert.equal(takenFor(to).length, 0)
  })

  it('sends nothing twice, however often it dies', async () => {
    const ids = new Map<string, string>()
    // A worker has all of a wave in its hands when it dies: some of it SES has taken, some of it not.
    for (let wave = 0; wave < 3; wave++) {
      const recipients = Array.from({ length: 20 }, newAddress)
      for (let n = 0; n < recipients.length; n++) ses.failNext('send', { answerDelayMs: 150 })
      await Promise.all(recipients.map(async (to) => ids.set(to, await send(to))))
      await stage.eventually('SES has some of them', () => recipients.flatMap(takenFor).length > 0)
      await stage.replaceWorker(2)
    }
    const recipients = [...ids.keys()]
    // What a dead one had in its hands is awaited; all else is sent.
    await stage.eventually('nothing is left to send', async () => {
      const { waiting, leaving } = await queue()
      return waiting === 0 && leaving === 0
    })
    for (const mail of recipients.flatMap(takenFor)) await told(mail, 'Delivery')
    await stage.replaceWorker(61)
    await isAwaited(0)
    for (const [to, id] of ids) {
      const taken = takenFor(to).length
      assert.ok(taken <= 1, `${to} has it ${taken} times`)
      await stage.settled(id, taken === 1 ? 'delivered' : 'failed')
    }
  })
})
