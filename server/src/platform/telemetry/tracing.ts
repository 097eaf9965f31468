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
 * OpenTelemetry spans for a message, from the request to the SMTP reply and later reports. Without POSTERN_OTLP_ENDPOINT
 * there is no tracer, every span is undefined, and no OpenTelemetry code is loaded.
 *
 * The parent of a span is always passed explicitly; there is no implicit current span. The tracer is not registered
 * globally, because libraries would then export spans whose contents have not been reviewed. Attributes are ids, codes and
 * hosts, never addresses, subjects, content or secrets.
 */
let tracer: Tracer | undefined

export const isTracing = (): boolean => tracer !== undefined

export interface TracingOptions {
  /** Base URL of an OTLP/HTTP collector; `/v1/traces` is appended. */
  endpoint: string
  /** For example `postern worker`. */
  service: string
  version: string
  /** The share of new traces to record. */
  ratio: number
}

/** If the collector is slow or unreachable, excess spans are dropped and mail is not delayed. */
const limits = { maxQueueSize: 4096, maxExportBatchSize: 512, scheduledDelayMillis: 1000 }
const exportMs = 5_000
const longestText = 256

export async function startTracing(options: TracingOptions): Promise<{ stop(): Promise<void> }> {
  // Loading takes 250 ms of CPU time, so the SDK is loaded only if tracing is enabled.
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
      // Spans that cannot be exported in time must not delay the shutdown.
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

/** Starts the first span in this process. With a parent, it joins the caller's trace and follows its sampling decision. */
export function beginTrace(
  name: string,
  { parent, ...options }: SpanOptions & { parent?: SpanContext | undefined },
): Span | undefined {
  if (!tracer) return undefined
  const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
  const span = tracer.startSpan(name, options, context)
  return span.isRecording() ? span : undefined
}

/** Starts a child span. Undefined if the parent is not recorded. */
export function follow(
  parent: Span | SpanContext | undefined,
  name: string,
  options: SpanOptions = {},
): Span | undefined {
  if (!tracer || !parent) return undefined
  return beginTrace(name, { ...options, parent: 'spanContext' in parent ? parent.spanContext() : parent })
}

/** Ends the span when `work` ends, with an error status if it fails. */
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

// W3C Trace Context §3.2.2. Later versions may append fields.
const traceparent =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

/** Undefined if the header is missing or invalid. */
export function readTraceparent(header: unknown): SpanContext | undefined {
  if (!tracer || typeof header !== 'string' || header.length > longestText) return undefined
  const [, traceId, spanId, flags = '0'] = traceparent.exec(header) ?? []
  if (traceId === undefined || spanId === undefined) return undefined
  const isSampled = (Number.parseInt(flags, 16) & TraceFlags.SAMPLED) !== 0
  return { traceId, spanId, isRemote: true, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE }
}

const traceIdBytes = 16
const spanIdBytes = 8

/** The 24 octets of a recorded span that are stored with a message. Null if the span is not recorded. */
export function storedTrace(span: SpanContext | undefined): Buffer | null {
  return span ? Buffer.from(span.traceId + span.spanId, 'hex') : null
}

/** Restores a stored span in another process. */
export function readStoredTrace(stored: Buffer | null | undefined): SpanContext | undefined {
  if (!tracer || stored?.length !== traceIdBytes + spanIdBytes) return undefined
  return {
    traceId: stored.toString('hex', 0, traceIdBytes),
    spanId: stored.toString('hex', traceIdBytes),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  }
}
