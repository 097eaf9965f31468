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
  test('nothing is a span, and nothing is read', async () => {
    assert.equal(isTracing(), false)
    assert.equal(readTraceparent(`00-${traceId}-${spanId}-01`), undefined)
    assert.equal(beginTrace('request', {}), undefined)
    assert.equal(readStoredTrace(Buffer.alloc(24, 1)), undefined)
    assert.equal(storedTrace(undefined), null)
    assert.equal(await within(undefined, async () => 7), 7)
  })
})

describe('with a collector', () => {
  test('a trace is that of the caller, and is found again after it was stored', async () => {
    const collector = await startCollector()
    const tracing = await startTracing({ endpoint: collector.url, ...options })
    const request = beginTrace('request', { parent: readTraceparent(`00-${traceId}-${spanId}-01`) })
    assert.ok(request)
    const stored = storedTrace(request.spanContext())
    assert.equal(stored?.length, 24)
    const dispatch = follow(readStoredTrace(stored), 'dispatch')
    assert.ok(dispatch)
    const failing = within(dispatch, async () => {
      throw new TypeError('the words of an error stay here')
    })
    await assert.rejects(failing)
    request.end()
    await tracing.stop()
    const spans = collector.spans().map((span) => [span.name, span.traceId, span.parentSpanId])
    assert.deepEqual(spans.sort(), [
      ['dispatch', traceId, request.spanContext().spanId],
      ['request', traceId, spanId],
    ])
    assert.ok(!collector.bodies.join('').includes('the words'))
    assert.equal(isTracing(), false)
  })

  test('only a traceparent that is one is believed', async () => {
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
    // A caller who does not record it does not have us record it.
    assert.equal(beginTrace('request', { parent: readTraceparent(`00-${traceId}-${spanId}-00`) }), undefined)
    await tracing.stop()
  })

  test('one that never answers costs spans, and does not keep the process from stopping', async () => {
    let asked = 0
    const server = createServer(() => void asked++)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanUp(async () => server.closeAllConnections())
    cleanUp(async () => void server.close())
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const tracing = await startTracing({ endpoint, ...options })
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 50_000; count++) beginTrace('request', {})?.end()
    const grown = process.memoryUsage().heapUsed - before
    assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes are kept`)
    // It ends although the collector never answers.
    await tracing.stop()
    assert.ok(asked > 0)
  })
})
