import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { body, messageIdOf, openStage } from './stage.ts'

/**
 * An administrator locks a project while its newsletter is being sent. Messages that a worker has already leased may
 * still be sent; the others are not sent while the project is locked. After the project is unlocked, every message
 * arrives exactly once.
 */
const stage = await openStage()
const mails = 300
const project = `/admin/projects/${stage.project.id}`

/** The messages that Postfix has accepted, according to its log. */
const handedOver = async (): Promise<string[]> =>
  [
    ...(await stage.postfix.log()).matchAll(/cleanup\[\d+\]: \w+: message-id=(<[^>]+@shop\.example\.org>)/g),
  ].map(([, id = '']) => id)

/** The number of leased messages and the number of waiting messages. */
const inQueue = async (): Promise<{ leased: number; waiting: number }> => {
  const [row] = await stage.database.query<{ leased: number; waiting: number }>(
    `select count(*) filter (where state = 'leased')::int as leased,
            count(*) filter (where state <> 'leased')::int as waiting from mail.dispatch`,
  )
  return row ?? assert.fail()
}

/** A claim that began before the lock can commit after it, and its messages are leased as well. */
const untilClaimsAreOver = () =>
  stage.database.query('do $$ begin lock table mail.dispatch in share mode; end $$')

describe('a project that is locked with mail in its queue', () => {
  it('sends no mail while it is locked, loses no message and sends none twice', async () => {
    const recipients = Array.from({ length: mails }, (_, n) => `reader${n}@example.net`)
    await body(200, stage.admin.post(`${project}/queue/hold`, { reason: 'Until all of it is there' }))
    const ids = await inTurns(recipients, (to) => stage.send({ to: [to] }))
    // About 200 ms per message on each connection, so the queue does not drain immediately.
    stage.line.latencyMs = 50
    await body(200, stage.admin.post(`${project}/queue/release`, { reason: 'All of it is there' }))
    await stage.eventually('a tenth is handed over', async () => (await handedOver()).length >= mails / 10)

    // The proxy forwards nothing, so no message reaches the MTA, no matter how long locking takes.
    stage.line.isSilent = true
    await body(200, stage.admin.patch(project, { is_locked: true, reason: 'Complaints about the list' }))
    await untilClaimsAreOver()
    const atLock = await inQueue()
    stage.line.isSilent = false
    await stage.eventually('no message is leased', async () => (await inQueue()).leased === 0)
    const whileLocked = mails - (await inQueue()).waiting
    await stage.eventually(
      'Postfix has logged the messages handed over',
      async () => (await handedOver()).length >= whileLocked,
    )
    await sleep(2000)
    assert.equal((await handedOver()).length, whileLocked)
    assert.ok(atLock.waiting > 0, 'no message was waiting when the project was locked')
    assert.ok(
      whileLocked <= mails - atLock.waiting,
      `${whileLocked} were handed over, and ${atLock.waiting} were waiting`,
    )

    const refused = await stage.shop.post('/messages', {
      from: 'orders@shop.example.org',
      to: ['anna@example.net'],
      subject: 'Your order',
      text: 'It is on its way.',
    })
    assert.deepEqual([refused.status, refused.body.error], [403, 'project_locked'])
    const statuses = await inTurns(ids, async (id) => (await stage.message(id)).status)
    assert.equal(statuses.filter((status) => status === 'held').length, mails - whileLocked)

    stage.line.latencyMs = 0
    await body(200, stage.admin.patch(project, { is_locked: false, reason: 'It was a mistake' }))
    await stage.eventually('all messages have arrived', () => stage.sink.received.length >= mails)
    await inTurns(ids, (id) => stage.settled(id, 'delivered'))
    assert.equal(stage.sink.received.length, mails)
    assert.equal(new Set(stage.sink.received.map(({ raw }) => messageIdOf(raw))).size, mails)
    assert.deepEqual(stage.sink.received.map(({ to }) => to[0]).sort(), recipients.toSorted())
  })
})

/** Runs twenty calls at a time. */
async function inTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let start = 0; start < items.length; start += 20) {
    results.push(...(await Promise.all(items.slice(start, start + 20).map(work))))
  }
  return results
}
