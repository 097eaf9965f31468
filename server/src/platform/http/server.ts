import { randomUUIDv7 } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify'
import { PosternError } from '../errors.ts'
import { type Logger, unredacted } from '../telemetry/log.ts'
import { Counter, DurationHistogram } from '../telemetry/metrics.ts'
import { beginTrace, readTraceparent, type Span, SpanKind } from '../telemetry/tracing.ts'
import { countedOperationOf } from './operation-id.ts'
import { sendProblem } from './problem.ts'
import { parseStrictJson, requireIdentityEncoding, requireUtf8 } from './strict-json.ts'
import { endAndLinger } from './unread-body.ts'
import { ajvOptions, buildValidator } from './validators.ts'

/** An open list: the operation ids in the route tables. */
const operations: readonly string[] = []
const requestCount = new Counter(
  'postern_http_requests_total',
  'HTTP requests, by operation and status class.',
  {
    operation: operations,
    status: ['1xx', '2xx', '3xx', '4xx', '5xx'],
  },
)
const requestSeconds = new DurationHistogram(
  'postern_http_request_duration_seconds',
  'Time from the first byte of a request to the last byte of its response.',
  { operation: operations },
  [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
)

const statusClass = (status: number): '1xx' | '2xx' | '3xx' | '4xx' | '5xx' =>
  (['1xx', '2xx', '3xx', '4xx'] as const)[Math.floor(status / 100) - 1] ?? '5xx'

export type HttpServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

export interface HttpServerOptions {
  log: Logger
  trustedProxies: string[]
  isHttps: boolean
}

const bodyLimitBytes = 1024 * 1024
// Clients must send the complete request within this time.
const requestTimeoutMs = 30_000
// How often Node checks the timeout; its default is 30 seconds.
const timeoutCheckMs = 5_000
// Idle connections are closed after this time. The longest pause without output occurs while the audit log
// is verified.
const silenceTimeoutMs = 300_000

/**
 * A Fastify instance with the rules for every request on every plane: strict JSON, one format for errors, a generated
 * request id (never the caller's, because the audit log records it), and headers that stop browsers from interpreting a
 * response as anything but data.
 */
export function createHttpServer({ log, trustedProxies, isHttps }: HttpServerOptions): HttpServer {
  const setHeaders = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
    reply.header('referrer-policy', 'no-referrer')
    reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    if (isHttps) reply.header('strict-transport-security', 'max-age=31536000')
  }
  const app = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: () => randomUUIDv7(),
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: silenceTimeoutMs,
    // Node's response to a request without Host has no body; requireHost sends a problem instead.
    http: { connectionsCheckingInterval: timeoutCheckMs, requireHostHeader: false },
    forceCloseConnections: 'idle',
    // Fastify's 503 has a different format. Requests on open connections are still served.
    return503OnClosing: false,
    // Longer than any URL, so that an overlong parameter is rejected by its schema, after authentication.
    routerOptions: { maxParamLength: 16_384 },
    ajv: { customOptions: ajvOptions },
    schemaController: { compilersFactory: { buildValidator } },
    rewriteUrl: ({ url = '/' }) => withoutBrokenEscapes(url),
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      sendProblem(error, request, reply)
    },
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, log),
  }).withTypeProvider<TypeBoxTypeProvider>()

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody)

  // Fastify's serializer would silently turn null into 0 or drop fields.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))

  // RFC 9110 §10.1.1: a server can ignore an unknown expectation. Node would send 417 without a body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  app.decorateRequest('projectId', null)
  app.decorateRequest('span', undefined)
  app.addHook('onRequest', async (request, reply) => {
    if (request.log.level !== 'silent') {
      request.span = beginTrace(countedOperationOf(request), {
        kind: SpanKind.SERVER,
        parent: readTraceparent(request.headers['traceparent']),
        attributes: { 'http.request.method': request.method, 'postern.request_id': request.id },
      })
    }
    setHeaders(request, reply)
    requireHost(request)
  })
  // Logs the route, not the URL, because path and query contain the caller's data.
  const requests = unredacted(log)
  app.addHook('onResponse', async (request, reply) => {
    const operation = countedOperationOf(request)
    requestCount.add({ operation, status: statusClass(reply.statusCode) })
    requestSeconds.observe({ operation }, reply.elapsedTime)
    request.span?.setAttributes({
      'http.response.status_code': reply.statusCode,
      'postern.project_id': projectOf(request) ?? 0,
    })
    request.span?.end()
    if (request.log.level === 'silent') return
    requests.info(
      {
        request_id: request.id,
        method: request.method,
        operation,
        route: request.routeOptions.url ?? null,
        project_id: projectOf(request),
        status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime * 10) / 10,
        remote_address: request.ip,
      },
      'request',
    )
  })
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) => {
    sendProblem(new PosternError('not_found', 'There is nothing at this URL.'), request, reply)
  })
  return app
}

/** The project id in the path after validation, or else the caller's project. */
function projectOf({ params, projectId }: FastifyRequest): number | null {
  const { project_id } = (params ?? {}) as { project_id?: unknown }
  return typeof project_id === 'number' ? project_id : projectId
}

/**
 * The router would reject a broken escape before the plane's authentication. Escaped as text, it reaches the route and
 * fails validation there, because no parameter allows a percent sign.
 */
function withoutBrokenEscapes(url: string): string {
  if (!url.includes('%')) return url
  const path = /^[^?#]*/.exec(url)?.[0] ?? ''
  try {
    decodeURI(path)
    return url
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length)
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's project, if the path contains none. */
    projectId: number | null
    /** Undefined if the request is not traced. */
    span: Span | undefined
  }
  interface FastifyContextConfig {
    /** Treats an empty body with the content type JSON as no body instead of invalid JSON. */
    allowsEmptyBody?: boolean
  }
}

export const parseJsonBody: FastifyBodyParser<Buffer, RawServerDefault> = (request, body, done) => {
  let parsed: unknown
  try {
    requireUtf8(request.headers['content-type'])
    requireIdentityEncoding(request.headers['content-encoding'])
    const isEmpty = body.length === 0 && request.routeOptions.config.allowsEmptyBody
    parsed = isEmpty ? undefined : parseStrictJson(body)
  } catch (error) {
    return done(error as Error)
  }
  return done(null, parsed)
}

/** RFC 9112 §3.2: an HTTP/1.1 request must have a Host header. */
function requireHost({ raw }: FastifyRequest): void {
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    throw new PosternError('invalid_parameter', 'The request has no Host header.')
  }
}

/** Writes the problem by hand, because malformed HTTP creates no request object. */
function answerMalformedRequest(error: Error & { code?: string }, socket: Socket, log: Logger): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  // More data after a response that ended the connection: discarded.
  if (!socket.writable) return
  const requestId = randomUUIDv7()
  log.info(
    { request_id: requestId, code: error.code, remote_address: socket.remoteAddress },
    'malformed request',
  )
  const body = JSON.stringify({
    error: 'invalid_parameter',
    message:
      error.code === 'HPE_HEADER_OVERFLOW'
        ? 'The request headers are too large.'
        : 'The request is not well-formed HTTP.',
  })
  const headers = [
    'HTTP/1.1 400 Bad Request',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  endAndLinger(socket, `${headers.join('\r\n')}\r\n\r\n${body}`)
}
