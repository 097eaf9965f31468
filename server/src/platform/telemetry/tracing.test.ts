import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { startCollector } from '../../testing/peers/trace-collector.ts'
import {
  beginTrace,
  follow,
  isTracing,
  readStoredTrace,
  readTraceparent,
  startTracing,
  storedTrace,
  within,
} from './tracing.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const options = { service: 'postern test', version: '0', ratio: 1 }

describe('without a collector', () => {
  test('no span is created and no traceparent is read', async () => {
    assert.equal(isTracing(), false)
    assert.equal(readTraceparent(`00-${traceId}-${spanId}-01`), undefined)
    assert.equal(beginTrace('request', {}), undefined)
    assert.equal(readStoredTrace(Buffer.alloc(24, 1)), undefined)
    assert.equal(storedTrace(undefined), null)
    assert.equal(await within(undefined, async () => 7), 7)
  })
})

describe('with a collector', () => {
  test("spans join the caller's trace, even after the trace was stored", async () => {
    const collector = await startCollector()
    const tracing = await startTracing({ endpoint: collector.url, ...options })
    const request = beginTrace('request', { parent: readTraceparent(`00-${traceId}-${spanId}-01`) })
    assert.ok(request)
    const stored = storedTrace(request.spanContext())
    assert.equal(stored?.length, 24)
    const dispatch = follow(readStoredTrace(stored), 'dispatch')
    assert.ok(dispatch)
    const failing = within(dispatch, async () => {
      throw new TypeError('the text of an error is not exported')
    })
    await assert.rejects(failing)
    request.end()
    await tracing.stop()
    const spans = collector.spans().map((span) => [span.name, span.traceId, span.parentSpanId])
    assert.deepEqual(spans.sort(), [
      ['dispatch', traceId, request.spanContext().spanId],
      ['request', traceId, spanId],
    ])
    assert.ok(!collector.bodies.join('').includes('the text of an error'))
    assert.equal(isTracing(), false)
  })

  test('only a valid traceparent is accepted', async () => {
    const tracing = await startTracing({ endpoint: 'http://127.0.0.1:9', ...options })
    for (const wrong of [
      ...[undefined, '', 'nonsense', `00-${traceId}-${spanId}`, `00-${traceId.toUpperCase()}-${spanId}-01`],
      ...[
        `00-${'0'.repeat(32)}-${spanId}-01`,
        `00-${traceId}-${'0'.repeat(16)}-01`,
        `ff-${traceId}-${spanId}-01`,
      ],
      ...[`00-${traceId}-${spanId}-01${'x'.repeat(300)}`, [`00-${traceId}-${spanId}-01`]],
    ]) {
      assert.equal(readTraceparent(wrong), undefined, String(wrong))
    }
    assert.equal(readTraceparent(`00-${traceId}-${spanId}-01`)?.traceFlags, 1)
    assert.equal(readTraceparent(`cc-${traceId}-${spanId}-03-later`)?.traceFlags, 1)
    // The caller's sampling decision is respected.
    assert.equal(beginTrace('request', { parent: readTraceparent(`00-${traceId}-${spanId}-00`) }), undefined)
    await tracing.stop()
  })

  test('an unresponsive collector causes spans to be lost but does not block the shutdown', async () => {
    let requests = 0
    const server = createServer(() => void requests++)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanUp(async () => server.closeAllConnections())
    cleanUp(async () => void server.close())
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const tracing = await startTracing({ endpoint, ...options })
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 50_000; count++) beginTrace('request', {})?.end()
    const grown = process.memoryUsage().heapUsed - before
    assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes retained`)
    // Returns even though the collector does not respond.
    await tracing.stop()
    assert.ok(requests > 0)
  })
})
