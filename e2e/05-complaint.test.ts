import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { complainAbout } from '../server/src/testing/fixtures/complaint.ts'
import { returnPathHost } from './parts.ts'
import { body, openStage } from './stage.ts'

/**
 * Anna clicks "this is spam". Her provider sends a report (ARF, RFC 5965) about the message to the operator. The intake
 * identifies the recipient by the return path: the message's status becomes `complained`, and Anna receives no further
 * mail from the shop.
 */
const stage = await openStage()

describe('a complaint', () => {
  it("is matched to its message, and suppresses the recipient's address", async () => {
    const id = await stage.send({ to: ['anna@example.net', 'bea@example.net'] })
    await stage.settled(id, 'delivered')

    const delivery = await stage.sink.next(({ to }) => to[0] === 'anna@example.net')
    const report = { port: stage.intakePort, to: `fbl@${returnPathHost}` }
    await complainAbout(delivery, report)

    const message = await stage.eventually('the complaint is recorded', async () => {
      const seen = await stage.message(id)
      return seen.recipients.some(({ status }) => status === 'complained') && seen
    })
    assert.deepEqual(Object.fromEntries(message.recipients.map(({ address, status }) => [address, status])), {
      'anna@example.net': 'complained',
      'bea@example.net': 'delivered',
    })
    const { data } = await body<{ data: { address: string; reason: string }[] }>(
      200,
      stage.shop.get('/suppressions'),
    )
    assert.deepEqual(
      data.map(({ address, reason }) => [address, reason]),
      [['anna@example.net', 'complaint']],
    )
    await stage.settled(await stage.send({ to: ['anna@example.net'] }), 'suppressed')

    // A repeated report counts as one complaint.
    await complainAbout(delivery, report)
    await stage.settled(await stage.send({ to: ['carl@example.net'] }), 'delivered')
    const complaints = (await stage.events(id)).filter(({ type }) => type === 'message.complained')
    assert.equal(complaints.length, 1)
  })

  it('about a message that was never sent has no effect', async () => {
    const id = await stage.send({ to: ['dora@example.net'] })
    await stage.settled(id, 'delivered')
    const delivery = await stage.sink.next(({ to }) => to[0] === 'dora@example.net')
    const forged = {
      ...delivery,
      from: delivery.from.replace(/^(.+)(.)@/, (_, head, last) => `${head}${last === 'a' ? 'b' : 'a'}@`),
    }
    forged.raw = Buffer.from(
      'From: orders@shop.example.org\r\nMessage-ID: <made-up@shop.example.org>\r\n\r\n',
    )
    await complainAbout(forged, { port: stage.intakePort, to: `fbl@${returnPathHost}` }).catch(() => {})
    await stage.settled(await stage.send({ to: ['emil@example.net'] }), 'delivered')
    assert.equal((await stage.message(id)).recipients[0]?.status, 'delivered')
  })
})
