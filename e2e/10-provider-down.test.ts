import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageIdOf, openStage } from './stage.ts'

/**
 * Postfix is stopped. The API still accepts mail and queues it; no message is lost or abandoned. After Postfix starts
 * again, every message is delivered exactly once.
 */
const stage = await openStage()
const mails = 30

describe('mail while the provider is down', () => {
  it('is accepted and queued, and is delivered once when the provider is available again', async () => {
    await stage.postfix.stop()
    const recipients = Array.from({ length: mails }, (_, n) => `anna${n}@example.net`)
    const ids = await Promise.all(recipients.map((to) => stage.send({ to: [to] })))
    await sleep(3000)
    for (const id of ids) assert.match((await stage.message(id)).status, /^(queued|deferred)$/)
    assert.equal(stage.sink.received.length, 0)

    await stage.postfix.start()
    for (const id of ids) await stage.settled(id, 'delivered')
    assert.equal(stage.sink.received.length, mails)
    assert.equal(new Set(stage.sink.received.map(({ raw }) => messageIdOf(raw))).size, mails)
  })
})
