import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verified } from '../server/src/testing/expectations/verify-webhook.ts'
import { type Received, startReceiver } from '../server/src/testing/peers/webhook-receiver.ts'
import { body, openStage } from './stage.ts'

/**
 * A shop has its events posted to its receivers. Events are signed, and all of them arrive eventually, whatever happens
 * to the receivers in the meantime. A receiver that returns 410 gets no further events, and its owner is notified.
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

/** Each endpoint has its own path on the receiver. */
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

/** Ends the backoff of all endpoints, as if a day had passed. */
const endBackoff = async (): Promise<void> => {
  for (const statement of [
    `update mail.endpoint_queues set backoff_until = backoff_until - interval '1 day', due_at = due_at - interval '1 day'
      where leased_until is null and due_at > postern.now()`,
    `update mail.deliveries set due_at = due_at - interval '1 day' where due_at > postern.now()`,
  ])
    await stage.database.query(statement)
}

/** Waits for events that were delayed by a backoff, even if a slow machine causes another backoff. */
const someAfterBackoff = (name: string, count: number) =>
  stage.eventually(`${count} events have arrived at /${name} after its backoff`, async () => {
    await endBackoff()
    return arrived(name).length >= count && arrived(name)
  })

const attempts = async (id: number): Promise<Attempt[]> =>
  (await body<{ data: Attempt[] }>(200, stage.admin.get(`${endpoints}/${id}/attempts`))).data

const some = (name: string, count: number) =>
  stage.eventually(
    `${count} events have arrived at /${name}`,
    () => arrived(name).length >= count && arrived(name),
  )

describe("a shop's webhooks", () => {
  it('report the events of a message, each once and signed', async () => {
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
    const seen = await stage.eventually('three attempts are recorded', async () => {
      const all = await attempts(id)
      return all.length === 3 && all
    })
    assert.ok(seen.every(({ outcome, status }) => outcome === 'delivered' && status === 204))
  })

  it('are tested by a test event, which is sent only to that endpoint', async () => {
    const { id, secret } = await makeEndpoint('tested')
    await body(202, stage.admin.post(`${endpoints}/${id}/test`, { reason: 'Does it work?' }))
    const [received] = await some('tested', 1)
    assert.equal(received && verified(secret, received).type, 'endpoint.test')
    assert.equal(arrived('orders').length, 3)
  })

  it('stop when the receiver returns 410, and other endpoints are notified by an event', async () => {
    const { secret } = await makeEndpoint('watch', 'endpoint.disabled')
    const { id } = await makeEndpoint('gone', 'message.accepted')
    receiver.answer({ status: 410 }, '/gone')
    await stage.send({ to: ['fritz@example.net'] })
    const [notice] = await some('watch', 1)
    const event = notice && verified(secret, notice)
    assert.equal(event?.type, 'endpoint.disabled')
    assert.equal(event?.data['id'], id)
    const endpoint = await body<Endpoint>(200, stage.admin.get(`${endpoints}/${id}`))
    assert.equal(endpoint.is_active, false)
    assert.match(endpoint.disabled_reason ?? '', /410/)
    await makeEndpoint('next', 'message.accepted')
    await stage.send({ to: ['gerda@example.net'] })
    await some('next', 1)
    assert.equal(arrived('gone').length, 1, 'no further event is sent there')
  })

  it('arrive later at a receiver that was down, signed with the current secret, and delay no other receiver', async () => {
    const { id, secret: old } = await makeEndpoint('moved', 'message.accepted')
    await makeEndpoint('quick', 'message.accepted')
    // Longer than the scenario runs.
    receiver.answer({ status: 503, headers: { 'retry-after': '3600' } }, '/moved')
    const released = Promise.withResolvers<void>()
    let count = 0
    let slow = ''
    let mostAtOnce = 0
    // A request times out after 15 s. If the machine is too slow for that, another slow endpoint is created.
    await stage.eventually(
      'events arrive at /quick while the first request to a slow endpoint is pending',
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
    assert.equal(mostAtOnce, 1, 'the slow endpoint is not healthy yet')

    const [first] = await some('moved', 1)
    assert.ok(first && isSignedBy(old, first))
    const { secret } = await body<{ secret: string }>(
      200,
      stage.admin.post(`${endpoints}/${id}/rotate`, { reason: 'It was in a log' }),
    )
    const before = arrived('moved').length
    receiver.answer({ status: 204 }, '/moved')
    released.resolve()
    await someAfterBackoff('moved', before + count)
    for (const received of arrived('moved').slice(before)) {
      assert.ok(isSignedBy(secret, received) && !isSignedBy(old, received))
    }
    const taken = new Set(arrived('moved').slice(before).map(idOf))
    assert.deepEqual(taken, new Set(arrived('quick').map(idOf)), 'the same events as at the other endpoints')
    await stage.eventually('the slow endpoint has received its events', async () => {
      await endBackoff()
      return new Set(arrived(slow).map(idOf)).size === 5
    })
  })

  it('wait for a receiver that is unreachable', async () => {
    await receiver.down()
    const messageId = await stage.send({ to: ['carl@example.net'] })
    await stage.settled(messageId, 'delivered')
    await receiver.up()
    const about = () => arrived('orders').filter((received) => received.body.includes(messageId))
    await stage.eventually('all its events have arrived', async () => {
      await endBackoff()
      return about().length === 3
    })
  })

  it('are replayed on request: one event, or a time range', async () => {
    const { id } = await makeEndpoint('again', 'message.accepted')
    const from = new Date().toISOString()
    for (const to of ['dora@example.net', 'emil@example.net']) await stage.send({ to: [to] })
    const [one] = await some('again', 2)
    const event_id = one && idOf(one)
    await body(202, stage.admin.post(`${endpoints}/${id}/replay`, { event_id, reason: 'It was lost' }))
    const third = (await some('again', 3)).at(-1)
    assert.equal(third && idOf(third), event_id)
    assert.equal(third?.body, one?.body, 'byte for byte')
    const to = new Date().toISOString()
    await body(
      202,
      stage.admin.post(`${endpoints}/${id}/replay`, { from, to, only_undelivered: false, reason: 'All' }),
    )
    const later = (await some('again', 5)).slice(3)
    assert.deepEqual(new Set(later.map(idOf)), new Set(arrived('again').slice(0, 2).map(idOf)))
  })

  it('are stopped, and the owner is notified by mail', async () => {
    const mail = await stage.eventually('the owner has received the notice', () =>
      stage.sink.received.find(({ to }) => to.includes('ada@postern.example.net')),
    )
    assert.match(mail.raw.toString(), /410/)
  })
})
