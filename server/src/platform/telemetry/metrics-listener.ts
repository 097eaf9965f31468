import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PosternError } from '../errors.ts'
import type { Logger } from './log.ts'
import { exposition, registry } from './metrics.ts'

/**
 * Serves `/metrics`, `/healthz` and `/readyz` for monitoring. The separate port keeps them out of reach of the API's
 * reverse proxies; by default it is only reachable from the same machine.
 */
export interface MetricsOptions {
  host: string
  port: number
  /** Returns the body of the response, or throws an error that says why the process is not ready. */
  requireReady(): Promise<object>
  log: Logger
}

export interface MetricsListener {
  port: number
  stop(): Promise<void>
}

const requestMs = 10_000

export async function startMetrics({
  host,
  port,
  requireReady,
  log,
}: MetricsOptions): Promise<MetricsListener> {
  const answers: Record<string, () => Promise<MetricsResponse>> = {
    '/metrics': async () => ({ status: 200, type: registry.contentType, text: await exposition() }),
    '/healthz': async () => json(200, { status: 'ok' }),
    '/readyz': async () => json(200, await requireReady()),
  }
  const server = createServer(
    { requestTimeout: requestMs, headersTimeout: requestMs },
    (request, response) => {
      void answer(request, answers, log).then((result) => write(response, result))
    },
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface MetricsResponse {
  status: number
  type: string
  text: string
}

const json = (status: number, body: object): MetricsResponse => ({
  ...{ status, type: 'application/json; charset=utf-8' },
  text: JSON.stringify(body),
})

async function answer(
  { method, url = '' }: IncomingMessage,
  answers: Record<string, () => Promise<MetricsResponse>>,
  log: Logger,
): Promise<MetricsResponse> {
  const path = url.replace(/\?.*/s, '')
  const handle = Object.hasOwn(answers, path) ? answers[path] : undefined
  if (!handle || (method !== 'GET' && method !== 'HEAD')) {
    return json(404, { error: 'not_found', message: 'There is nothing at this URL.' })
  }
  try {
    return await handle()
  } catch (error) {
    if (error instanceof PosternError) return json(503, { error: error.code, message: error.message })
    log.error({ err: error }, 'metrics could not be collected')
    return json(500, { error: 'internal_error', message: 'Internal error. See the log of this process.' })
  }
}

function write(response: ServerResponse, { status, type, text }: MetricsResponse): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(response.req.method === 'HEAD' ? undefined : text)
}
