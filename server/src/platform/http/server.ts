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
import { metrics, statusClass } from '../telemetry/metrics.ts'
import { beginTrace, readTraceparent, type Span, SpanKind } from '../telemetry/tracing.ts'
import { countedOperationOf } from './operation-id.ts'
import { sendProblem } from './problem.ts'
import { parseStrictJson, requireIdentityEncoding, requireUtf8 } from './strict-json.ts'
import { ajvOptions, buildValidator } from './validators.ts'

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
// A client that takes longer than this to send a request is not one.
const requestTimeoutMs = 30_000
// How often Node looks whether that is so; its own choice is every 30 seconds.
const timeoutCheckMs = 5_000
// A client that neither sends nor reads for so long is gone. The longest silence of ours is a verification of the audit.
const silenceTimeoutMs = 300_000

/**
 * A Fastify with the rules that hold for every request of every plane: strict JSON, one shape of failure, a
 * request id of our own making (never the caller's: it goes into the audit), and headers that keep a
 * browser from doing anything with an answer but reading it.
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
    // Node's own refusal of a request without Host has no body; ours is below.
    http: { connectionsCheckingInterval: timeoutCheckMs, requireHostHeader: false },
    forceCloseConnections: 'idle',
    // Fastify's own answer has another shape; what arrives on an open connection is still served.
    return503OnClosing: false,
    // Longer than any address: a parameter that is too long is for its schema to refuse, behind the door.
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

  // An answer is what its view made it. Fastify's serialiser would turn null into 0 or drop a field in silence.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))

  // RFC 9110 §10.1.1: an expectation that is not known may be passed over. Node would answer 417, without a body.
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
  // The route, not the address: what a caller put in the path or query stays out of the log.
  const requests = unredacted(log)
  app.addHook('onResponse', async (request, reply) => {
    const operation = countedOperationOf(request)
    metrics.httpRequests.add({ operation, status: statusClass(reply.statusCode) })
    metrics.httpSeconds.observe({ operation }, reply.elapsedTime)
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
    sendProblem(new PosternError('not_found', 'There is nothing at this address.'), request, reply)
  })
  return app
}

/** In the path, once that was found well formed; or that of whoever calls. */
function projectOf({ params, projectId }: FastifyRequest): number | null {
  const { project_id } = (params ?? {}) as { project_id?: unknown }
  return typeof project_id === 'number' ? project_id : projectId
}

/**
 * The router would answer a broken escape itself, before any plane's door. As text it goes where the address leads,
 * and is refused there: no parameter has a percent sign in it.
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
    /** Whose project it is about, where the caller tells and not the path. */
    projectId: number | null
    /** Undefined where it is not recorded. */
    span: Span | undefined
  }
  interface FastifyContextConfig {
    /** Content-Type says JSON and nothing follows: no body, instead of a broken one. */
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

/** RFC 9112 §3.2: whoever speaks HTTP/1.1 says whom they mean. */
function requireHost({ raw }: FastifyRequest): void {
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    throw new PosternError('invalid_parameter', 'The request has no Host header.')
  }
}

/** What is not even HTTP gets the same two fields, written by hand: there is no request to reply to. */
function answerMalformedRequest(error: Error & { code?: string }, socket: Socket, log: Logger): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const requestId = randomUUIDv7()
  log.info(
    { request_id: requestId, code: error.code, remote_address: socket.remoteAddress },
    'malformed request',
  )
  const body = JSON.stringify({
    error: 'invalid_parameter',
    message:
      error.code === 'HPE_HEADER_OVERFLOW'
        ? 'The headers of the request are too large.'
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
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`)
}
