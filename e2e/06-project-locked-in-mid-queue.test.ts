import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { body, messageIdOf, openStage } from './stage.ts'

/**
 * A newsletter is on its way when an administrator locks the project. What a worker had in its hands may still go; of
 * the rest not one mail is handed over, however long it takes. Then the project is unlocked, and everything arrives,
 * each mail once.
 */
const stage = await openStage()
const mails = 300
const project = `/admin/projects/${stage.project.id}`

/** Which mails Postfix has taken, by its own log. */
const handedOver = async (): Promise<string[]> =>
  [
    ...(await stage.postfix.log()).matchAll(/cleanup\[\d+\]: \w+: message-id=(<[^>]+@shop\.example\.org>)/g),
  ].map(([, id = '']) => id)

/** How many a worker has in its hands, and how many wait. */
const inQueue = async (): Promise<{ leased: number; waiting: number }> => {
  const [row] = await stage.database.query<{ leased: number; waiting: number }>(
    `select count(*) filter (where state = 'leased')::int as leased,
            count(*) filter (where state <> 'leased')::int as waiting from mail.dispatch`,
  )
  return row ?? assert.fail()
}

/** A claim that began before the lock may commit after it: its mails are in a worker's hands, too. */
const untilClaimsAreOver = () =>
  stage.database.query('do $$ begin lock table mail.dispatch in share mode; end $$')

describe('a project that is locked with mail in its queue', () => {
  it('hands nothing over while it is locked, loses nothing and sends nothing twice', async () => {
    const recipients = Array.from({ length: mails }, (_, n) => `reader${n}@example.net`)
    await body(200, stage.admin.post(`${project}/queue/hold`, { reason: 'Until all of it is there' }))
    const ids = await inTurns(recipients, (to) => stage.send({ to: [to] }))
    // Some 200 ms per mail and connection, so that the queue does not empty at once.
    stage.line.latencyMs = 50
    await body(200, stage.admin.post(`${project}/queue/release`, { reason: 'All of it is there' }))
    await stage.eventually('a tenth is handed over', async () => (await handedOver()).length >= mails / 10)

    // While the line passes nothing on, no mail leaves, however long the lock takes.
    stage.line.isSilent = true
    await body(200, stage.admin.patch(project, { is_locked: true, reason: 'Complaints about the list' }))
    await untilClaimsAreOver()
    const atLock = await inQueue()
    stage.line.isSilent = false
    await stage.eventually('nothing is in hand any more', async () => (await inQueue()).leased === 0)
    const whileLocked = mails - (await inQueue()).waiting
    await stage.eventually(
      'Postfix has logged what was handed over',
      async () => (await handedOver()).length >= whileLocked,
    )
    await sleep(2000)
    assert.equal((await handedOver()).length, whileLocked)
    assert.ok(atLock.waiting > 0, 'the lock came too late to be of use')
    assert.ok(whileLocked <= mails - atLock.waiting, `${whileLocked} went, and ${atLock.waiting} waited`)

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
    await stage.eventually('everything has arrived', () => stage.sink.received.length >= mails)
    await inTurns(ids, (id) => stage.settled(id, 'delivered'))
    assert.equal(stage.sink.received.length, mails)
    assert.equal(new Set(stage.sink.received.map(({ raw }) => messageIdOf(raw))).size, mails)
    assert.deepEqual(stage.sink.received.map(({ to }) => to[0]).sort(), recipients.toSorted())
  })
})

/** Twenty at a time. */
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
