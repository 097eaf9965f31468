import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verified } from '../server/src/testing/expectations/verify-webhook.ts'
import { type Received, startReceiver } from '../server/src/testing/peers/webhook-receiver.ts'
import { body, openStage } from './stage.ts'

/**
 * A shop has its events posted to receivers of its own: they arrive signed, and in the end all of them do, whatever happens
 * to the receivers on the way. One that says that it is gone is told no more, and its owner is told so.
 */
const receiver = await startReceiver()
const stage = await openStage({
  settings: { ...receiver.settings, POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.example.net' },
})
const endpoints = `/admin/projects/${stage.project.id}/endpoints`

interface Endpoint {
  id: number
  is_active: boolean
  disabled_reason: string | null
  consecutive_failures: number
}

interface Attempt {
  event_id: string
  event_type: string
  outcome: string
  status: number | null
}

/** Each has a path of its own at the receiver. */
async function makeEndpoint(name: string, ...events: string[]): Promise<{ id: number; secret: string }> {
  const { resource, secret } = await body<{ resource: Endpoint; secret: string }>(
    201,
    stage.admin.post(endpoints, { name, url: `${receiver.url}/${name}`, events }),
  )
  return { id: resource.id, secret }
}

const arrived = (name: string): Received[] => receiver.got.filter(({ path }) => path === `/${name}`)

const isSignedBy = (secret: string, received: Received): boolean => {
  try {
    verified(secret, received)
    return true
  } catch {
    return false
  }
}

const idOf = ({ headers }: Received): string => String(headers['webhook-id'])

/** The rests of all endpoints are over, as if a day had passed. */
const endRests = async (): Promise<void> => {
  for (const statement of [
    `update mail.endpoint_queues set backoff_until = backoff_until - interval '1 day', due_at = due_at - interval '1 day'
      where leased_until is null and due_at > postern.now()`,
    `update mail.deliveries set due_at = due_at - interval '1 day' where due_at > postern.now()`,
  ])
    await stage.database.query(statement)
}

/** What waited for the end of a rest arrives, however often the machine was too slow and the endpoint rests again. */
const someAfterRests = (name: string, count: number) =>
  stage.eventually(`${count} events have arrived at /${name} after its rests`, async () => {
    await endRests()
    return arrived(name).length >= count && arrived(name)
  })

const attempts = async (id: number): Promise<Attempt[]> =>
  (await body<{ data: Attempt[] }>(200, stage.admin.get(`${endpoints}/${id}/attempts`))).data

const some = (name: string, count: number) =>
  stage.eventually(
    `${count} events have arrived at /${name}`,
    () => arrived(name).length >= count && arrived(name),
  )

describe('the webhooks of a shop', () => {
  it('tell what became of a mail, each event once and signed', async () => {
    const { id, secret } = await makeEndpoint(
      'orders',
      'message.accepted',
      'message.sent',
      'message.delivered',
    )
    const messageId = await stage.send({ to: ['anna@example.net'] })
    const events = (await some('orders', 3)).map((received) => verified(secret, received))
    assert.deepEqual(
      new Set(events.map(({ type }) => type)),
      new Set(['message.accepted', 'message.sent', 'message.delivered']),
    )
    assert.ok(events.every(({ data }) => data['message_id'] === messageId))
    assert.equal(new Set(arrived('orders').map(idOf)).size, 3)
    const seen = await stage.eventually('three attempts are written down', async () => {
      const all = await attempts(id)
      return all.length === 3 && all
    })
    assert.ok(seen.every(({ outcome, status }) => outcome === 'delivered' && status === 204))
  })

  it('are tested by an event of their own, for one endpoint alone', async () => {
    const { id, secret } = await makeEndpoint('tested')
    await body(202, stage.admin.post(`${endpoints}/${id}/test`, { reason: 'Does it work?' }))
    const [received] = await some('tested', 1)
    assert.equal(received && verified(secret, received).type, 'endpoint.test')
    assert.equal(arrived('orders').length, 3)
  })

  it('end when the receiver says that it is gone, and others are told so', async () => {
    const { secret } = await makeEndpoint('watch', 'endpoint.disabled')
    const { id } = await makeEndpoint('gone', 'message.accepted')
    receiver.answer({ status: 410 }, '/gone')
    await stage.send({ to: ['fritz@example.net'] })
    const [told] = await some('watch', 1)
    const event = told && verified(secret, told)
    assert.equal(event?.type, 'endpoint.disabled')
    assert.equal(event?.data['id'], id)
    const endpoint = await body<Endpoint>(200, stage.admin.get(`${endpoints}/${id}`))
    assert.equal(endpoint.is_active, false)
    assert.match(endpoint.disabled_reason ?? '', /410/)
    await makeEndpoint('next', 'message.accepted')
    await stage.send({ to: ['gerda@example.net'] })
    await some('next', 1)
    assert.equal(arrived('gone').length, 1, 'nothing more is sent there')
  })

  it('arrive later at a receiver that was down, with the secret of that time, and never keep another waiting', async () => {
    const { id, secret: old } = await makeEndpoint('moved', 'message.accepted')
    await makeEndpoint('quick', 'message.accepted')
    // For longer than the scenario takes.
    receiver.answer({ status: 503, headers: { 'retry-after': '3600' } }, '/moved')
    const released = Promise.withResolvers<void>()
    let count = 0
    let slow = ''
    let mostAtOnce = 0
    // The worker gives up a request after 15 s. A machine may be too slow for that: then another slow one is made.
    await stage.eventually(
      'events arrive at /quick while the first request to a slow one is pending',
      async () => {
        const name = `slow${count}`
        slow = name
        await makeEndpoint(name, 'message.accepted')
        receiver.answer(() => {
          mostAtOnce = Math.max(mostAtOnce, receiver.pending(`/${name}`))
          return { status: 204, after: released.promise }
        }, `/${name}`)
        let meanwhile = 0
        receiver.answer(() => {
          if (arrived(name).length === 1 && receiver.pending(`/${name}`) === 1) meanwhile++
          return { status: 204 }
        }, '/quick')
        for (let n = 0; n < 5; n++) await stage.send({ to: [`reader${count++}@example.net`] })
        await some('quick', count)
        return meanwhile > 0
      },
    )
    assert.equal(mostAtOnce, 1, 'the slow one has not proved itself yet')

    const [first] = await some('moved', 1)
    assert.ok(first && isSignedBy(old, first))
    const { secret } = await body<{ secret: string }>(
      200,
      stage.admin.post(`${endpoints}/${id}/rotate`, { reason: 'It was in a log' }),
    )
    const before = arrived('moved').length
    receiver.answer({ status: 204 }, '/moved')
    released.resolve()
    await someAfterRests('moved', before + count)
    for (const received of arrived('moved').slice(before)) {
      assert.ok(isSignedBy(secret, received) && !isSignedBy(old, received))
    }
    const taken = new Set(arrived('moved').slice(before).map(idOf))
    assert.deepEqual(taken, new Set(arrived('quick').map(idOf)), 'the same events as at the others')
    await stage.eventually('the slow one has its events, too', async () => {
      await endRests()
      return new Set(arrived(slow).map(idOf)).size === 5
    })
  })

  it('wait for a receiver that cannot be reached at all', async () => {
    await receiver.down()
    const messageId = await stage.send({ to: ['carl@example.net'] })
    await stage.settled(messageId, 'delivered')
    await receiver.up()
    const about = () => arrived('orders').filter((received) => received.body.includes(messageId))
    await stage.eventually('all that was to be told of it has arrived', async () => {
      await endRests()
      return about().length === 3
    })
  })

  it('are delivered once more where that is asked for: one event, or all of a time', async () => {
    const { id } = await makeEndpoint('again', 'message.accepted')
    const from = new Date().toISOString()
    for (const to of ['dora@example.net', 'emil@example.net']) await stage.send({ to: [to] })
    const [one] = await some('again', 2)
    const event_id = one && idOf(one)
    await body(202, stage.admin.post(`${endpoints}/${id}/replay`, { event_id, reason: 'It was lost' }))
    const third = (await some('again', 3)).at(-1)
    assert.equal(third && idOf(third), event_id)
    assert.equal(third?.body, one?.body, 'to the byte')
    const to = new Date().toISOString()
    await body(
      202,
      stage.admin.post(`${endpoints}/${id}/replay`, { from, to, only_undelivered: false, reason: 'All' }),
    )
    const later = (await some('again', 5)).slice(3)
    assert.deepEqual(new Set(later.map(idOf)), new Set(arrived('again').slice(0, 2).map(idOf)))
  })

  it('leave it to a mail to tell the owner of the one that is gone', async () => {
    const mail = await stage.eventually('the owner has mail', () =>
      stage.sink.received.find(({ to }) => to.includes('ada@postern.example.net')),
    )
    assert.match(mail.raw.toString(), /410/)
  })
})
