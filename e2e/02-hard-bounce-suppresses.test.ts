import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { body, openStage } from './stage.ts'

/**
 * The recipient's server rejects an unknown user. Postfix reports this, the message's status becomes `bounced`, and the
 * address is suppressed. The next message to that address is not sent; its status is `suppressed`.
 */
const stage = await openStage()

describe('an address that does not exist', () => {
  it('bounces, and receives no further mail', async () => {
    stage.sink.treat('nobody@example.net', { at: 'rcpt', answer: '550 5.1.1 No such user' })

    const first = await stage.send({ to: ['nobody@example.net'] })
    const bounced = await stage.settled(first, 'bounced')
    assert.match(bounced.recipients[0]?.diagnostic ?? '', /5\.1\.1/)
    const events = await stage.events(first)
    assert.ok(events.some(({ type }) => type === 'message.bounced'))

    const { data } = await body<{ data: { address: string; reason: string }[] }>(
      200,
      stage.shop.get('/suppressions'),
    )
    assert.deepEqual(
      data.map(({ address, reason }) => [address, reason]),
      [['nobody@example.net', 'bounce']],
    )

    const second = await stage.send({ to: ['Nobody@Example.net'] })
    await stage.settled(second, 'suppressed')
    assert.ok((await stage.events(second)).some(({ type }) => type === 'message.suppressed'))

    // By now a later recipient has received a message, and the suppressed address was tried only once, for the first
    // message.
    await stage.settled(await stage.send({ to: ['anna@example.net'] }), 'delivered')
    assert.equal(stage.sink.refused.length, 1)
    assert.equal(stage.sink.received.length, 1)
  })

  it('does not affect the other recipients of a message', async () => {
    const id = await stage.send({ to: ['nobody@example.net', 'bea@example.net'] })
    const message = await stage.eventually('the other recipient is delivered', async () => {
      const seen = await stage.message(id)
      return seen.recipients.some(({ status }) => status === 'delivered') && seen
    })
    assert.deepEqual(Object.fromEntries(message.recipients.map(({ address, status }) => [address, status])), {
      'nobody@example.net': 'suppressed',
      'bea@example.net': 'delivered',
    })
  })

  it("is counted in the project's statistics", async () => {
    const figures = await stage.eventually("the project's statistics include the bounce", async () => {
      const { body: project } = await stage.admin.get(`/admin/projects/${stage.project.id}`)
      return project.bounced > 0 && project
    })
    assert.equal(figures.bounced, 1)
    assert.equal(figures.failed, 0)
    assert.equal(figures.complained, 0)
  })
})
