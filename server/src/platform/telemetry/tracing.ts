import {
  type Attributes,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'

export { type Span, type SpanContext, SpanKind }

/**
 * What a mail went through, as spans for OpenTelemetry, from the request to the SMTP reply and what came after. Where
 * nobody asked for traces (POSTERN_OTLP_ENDPOINT) there is no tracer, every span is undefined, and nothing is loaded.
 *
 * A span's parent is always named: there is no current one that would have to be carried along in silence. The tracer is
 * ours alone and not registered for all: libraries would trace by themselves, and nobody has looked at what they tell.
 * Attributes are ids, codes and hosts; no address, subject or content, and nothing that anybody keeps secret.
 */
let tracer: Tracer | undefined

export const isTracing = (): boolean => tracer !== undefined

export interface TracingOptions {
  /** Of a collector that speaks OTLP over HTTP; `/v1/traces` is below it. */
  endpoint: string
  /** `postern worker` */
  service: string
  version: string
  /** Of the traces that begin here, the share that is recorded. */
  ratio: number
}

/** A collector that is slow, or away, costs spans and never mail: what does not fit is dropped. */
const limits = { maxQueueSize: 4096, maxExportBatchSize: 512, scheduledDelayMillis: 1000 }
const exportMs = 5_000
const longestText = 256

export async function startTracing(options: TracingOptions): Promise<{ stop(): Promise<void> }> {
  // A quarter of a second of a processor's time, for those alone who want it.
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const exporter = new OTLPTraceExporter({ url: `${options.endpoint}/v1/traces`, timeoutMillis: exportMs })
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.namespace': 'postern',
      'service.name': options.service,
      'service.version': options.version,
    }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(options.ratio) }),
    spanLimits: { attributeValueLengthLimit: longestText },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, exportTimeoutMillis: exportMs, ...limits })],
  })
  tracer = provider.getTracer('postern', options.version)
  return {
    async stop() {
      tracer = undefined
      // What the collector would not have in time is not worth a slow stop.
      await provider.shutdown().catch(() => {})
    },
  }
}

export interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
  links?: Link[]
  startTime?: Date
}

/** The first span in this process: of a trace of its own, or of the caller's, whose word on recording it is kept. */
export function beginTrace(
  name: string,
  { parent, ...options }: SpanOptions & { parent?: SpanContext | undefined },
): Span | undefined {
  if (!tracer) return undefined
  const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
  const span = tracer.startSpan(name, options, context)
  return span.isRecording() ? span : undefined
}

/** A span under another one, or under what is known of it; undefined where that was not recorded. */
export function follow(
  parent: Span | SpanContext | undefined,
  name: string,
  options: SpanOptions = {},
): Span | undefined {
  if (!tracer || !parent) return undefined
  return beginTrace(name, { ...options, parent: 'spanContext' in parent ? parent.spanContext() : parent })
}

/** Has the span end with the work, and say that it failed where it does. */
export async function within<T>(span: Span | undefined, work: () => Promise<T>): Promise<T> {
  if (!span) return work()
  try {
    return await work()
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'failed' })
    throw error
  } finally {
    span.end()
  }
}

// W3C Trace Context §3.2.2. Later versions may have more behind it.
const traceparent =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

/** What a caller says its trace is; undefined for what says nothing. */
export function readTraceparent(header: unknown): SpanContext | undefined {
  if (!tracer || typeof header !== 'string' || header.length > longestText) return undefined
  const [, traceId, spanId, flags = '0'] = traceparent.exec(header) ?? []
  if (traceId === undefined || spanId === undefined) return undefined
  const isSampled = (Number.parseInt(flags, 16) & TraceFlags.SAMPLED) !== 0
  return { traceId, spanId, isRemote: true, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE }
}

const traceIdBytes = 16
const spanIdBytes = 8

/** A span that is recorded, as it is stored with a mail: 24 octets. Null for all others, which cost nothing. */
export function storedTrace(span: SpanContext | undefined): Buffer | null {
  return span ? Buffer.from(span.traceId + span.spanId, 'hex') : null
}

/** The same, read again by another process. */
export function readStoredTrace(stored: Buffer | null | undefined): SpanContext | undefined {
  if (!tracer || stored?.length !== traceIdBytes + spanIdBytes) return undefined
  return {
    traceId: stored.toString('hex', 0, traceIdBytes),
    spanId: stored.toString('hex', traceIdBytes),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  }
}
