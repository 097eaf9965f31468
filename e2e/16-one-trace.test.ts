import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startCollector } from '../server/src/testing/peers/trace-collector.ts'
import { startReceiver } from '../server/src/testing/peers/webhook-receiver.ts'
import { body, openStage } from './stage.ts'

/**
 * The shop's program uses tracing and sends its trace context with a message. The trace continues through the separate
 * processes `postern api`, `postern worker` and `postern intake`, and through the database, to the MTA's reply, its
 * report and the shop's receiver.
 */
const receiver = await startReceiver()
const collector = await startCollector()
const stage = await openStage({
  settings: { ...receiver.settings, POSTERN_OTLP_ENDPOINT: collector.url, POSTERN_TRACE_SHARE: '0' },
})
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const shopSpan = '00f067aa0ba902b7'

const send = (traceparent: string, to: string): Promise<string> =>
  fetch(`${stage.apiUrl}/v1/messages`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stage.secret}`,
      'content-type': 'application/json',
      traceparent,
    },
    body: JSON.stringify({
      ...{
        from: 'Shop <orders@shop.example.org>',
        to: [to],
        subject: 'Your order',
        text: 'It is on its way.',
      },
    }),
  }).then(async (answer) => {
    assert.equal(answer.status, 202)
    return ((await answer.json()) as { id: string }).id
  })

describe('a trace', () => {
  it('spans the request, the SMTP reply, the report and the webhook', async () => {
    await body(
      201,
      stage.admin.post(`/admin/projects/${stage.project.id}/endpoints`, {
        ...{ name: 'Events', url: `${receiver.url}/events`, events: ['message.delivered'], is_active: true },
      }),
    )
    const id = await send(`00-${traceId}-${shopSpan}-01`, 'anna@example.net')
    await stage.settled(id, 'delivered')
    const names = [
      'webhook',
      'feedback',
      'hand over',
      'compose and sign',
      'claim',
      'dispatch',
      'acceptance group',
    ]
    const spans = await collector.until(
      (all) => names.every((name) => all.some((span) => span.name === name)),
      'all spans',
    )
    assert.deepEqual(new Set(spans.map((span) => span.traceId)), new Set([traceId]))
    const one = (name: string) => {
      const found = spans.filter((span) => span.name === name)
      assert.equal(found.length, 1, name)
      return found[0] ?? assert.fail()
    }
    const request = one('customer.messages.send-by-key')
    assert.deepEqual([request.service, request.parentSpanId], ['postern api', shopSpan])
    assert.equal(request.attributes['http.response.status_code'], 202)
    assert.equal(request.attributes['postern.project_id'], stage.project.id)
    assert.equal(one('acceptance group').parentSpanId, request.spanId)

    const dispatch = one('dispatch')
    assert.deepEqual([dispatch.service, dispatch.parentSpanId], ['postern worker', request.spanId])
    assert.equal(dispatch.attributes['postern.message_id'], id)
    const [link] = dispatch.links
    assert.equal(link?.spanId, request.spanId)
    assert.ok(Number(link?.attributes['postern.queue.wait_ms']) >= 0)
    for (const name of ['claim', 'compose and sign', 'hand over'])
      assert.equal(one(name).parentSpanId, dispatch.spanId, name)

    const handover = one('hand over')
    assert.equal(handover.attributes['smtp.reply_code'], 250)
    assert.match(String(handover.attributes['server.address']), /127\.0\.0\.1/)
    assert.ok((await stage.postfix.log()).includes(String(handover.attributes['postern.mta_queue_id'])))
    assert.ok(handover.startMs >= one('compose and sign').endMs && handover.endMs <= dispatch.endMs)

    const feedback = one('feedback')
    assert.deepEqual([feedback.service, feedback.parentSpanId], ['postern intake', request.spanId])
    assert.equal(feedback.attributes['postern.feedback'], 'delivered')
    assert.equal(one('webhook').attributes['http.response.status_code'], 204)
    assert.ok(!collector.bodies.join('').includes('anna@'), 'the trace does not contain the recipient')
  })

  it('is not started if the sampling ratio is 0 or the caller does not sample it', async () => {
    await stage.settled(await stage.send({ to: ['bea@example.net'] }), 'delivered')
    await stage.settled(await send(`00-${'ab'.repeat(16)}-${shopSpan}-00`, 'carl@example.net'), 'delivered')
    await stage.settled(await send('00-nonsense-01', 'dora@example.net'), 'delivered')
    const stored = await stage.database.query('select from mail.messages where trace is not null')
    assert.equal(stored.length, 1)
    assert.ok(collector.spans().every((span) => span.traceId === traceId))
  })
})
