import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { eventually } from '../harness/waiting.ts'

/** An OpenTelemetry collector for traces sent with OTLP over HTTP as JSON. */
export interface Collector {
  url: string
  /** The request bodies as received. */
  bodies: string[]
  /** All spans received so far. */
  spans(): CollectedSpan[]
  /** Resolves with the spans when they meet the condition. */
  until(isSo: (spans: CollectedSpan[]) => boolean, what: string): Promise<CollectedSpan[]>
}

export interface CollectedSpan {
  service: string
  name: string
  traceId: string
  spanId: string
  parentSpanId: string
  kind: number
  startMs: number
  endMs: number
  attributes: Record<string, string | number>
  links: { traceId: string; spanId: string; attributes: Record<string, string | number> }[]
}

/** The fields of opentelemetry/proto/trace/v1/trace.proto that tests use, in JSON. */
interface Attribute {
  key: string
  value: { stringValue?: string; intValue?: string | number; doubleValue?: number }
}

interface Exported {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      spans: {
        traceId: string
        spanId: string
        parentSpanId?: string
        name: string
        kind: number
        startTimeUnixNano: string
        endTimeUnixNano: string
        attributes: Attribute[]
        links?: { traceId: string; spanId: string; attributes?: Attribute[] }[]
      }[]
    }[]
  }[]
}

export async function startCollector(): Promise<Collector> {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const isTraces = request.method === 'POST' && request.url === '/v1/traces'
    if (isTraces) bodies.push(Buffer.concat(parts).toString())
    response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp(async () => {
    server.closeAllConnections()
    server.close()
  })
  const spans = () => bodies.flatMap((body) => spansOf(JSON.parse(body)))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    spans,
    until: (isSo, what) =>
      eventually(`the collector has ${what}`, () => {
        const all = spans()
        return isSo(all) && all
      }).catch((error: Error) => {
        throw new Error(`${error.message}. It has: ${spans().map(({ name }) => name)}`)
      }),
  }
}

function spansOf({ resourceSpans }: Exported): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(valuesOf(resource.attributes)['service.name']),
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        kind: span.kind,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
        attributes: valuesOf(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId, attributes = [] }) => ({
          ...{ traceId, spanId },
          attributes: valuesOf(attributes),
        })),
      })),
    ),
  )
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue } }) => [
      key,
      stringValue ?? Number(intValue ?? doubleValue),
    ]),
  )
