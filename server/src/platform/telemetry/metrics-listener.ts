import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PosternError } from '../errors.ts'
import type { Logger } from './log.ts'
import { exposition, registry } from './metrics.ts'

/**
 * For who watches over this process, and for nobody else: `/metrics`, `/healthz`, `/readyz`. A port of its own, so that no
 * front end that leads to the API ever leads here; by default it is reached from the same machine alone.
 */
export interface MetricsOptions {
  host: string
  port: number
  /** What is answered; rejects with a sentence that says why not. */
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
  const answers: Record<string, () => Promise<Said>> = {
    '/metrics': async () => ({ status: 200, type: registry.contentType, text: await exposition() }),
    '/healthz': async () => json(200, { status: 'ok' }),
    '/readyz': async () => json(200, await requireReady()),
  }
  const server = createServer(
    { requestTimeout: requestMs, headersTimeout: requestMs },
    (request, response) => {
      void answer(request, answers, log).then((said) => write(response, said))
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

interface Said {
  status: number
  type: string
  text: string
}

const json = (status: number, body: object): Said => ({
  ...{ status, type: 'application/json; charset=utf-8' },
  text: JSON.stringify(body),
})

async function answer(
  { method, url = '' }: IncomingMessage,
  answers: Record<string, () => Promise<Said>>,
  log: Logger,
): Promise<Said> {
  const path = url.replace(/\?.*/s, '')
  const say = Object.hasOwn(answers, path) ? answers[path] : undefined
  if (!say || (method !== 'GET' && method !== 'HEAD')) {
    return json(404, { error: 'not_found', message: 'There is nothing at this address.' })
  }
  try {
    return await say()
  } catch (error) {
    if (error instanceof PosternError) return json(503, { error: error.code, message: error.message })
    log.error({ err: error }, 'metrics could not be collected')
    return json(500, { error: 'internal_error', message: 'The log of this process says more.' })
  }
}

function write(response: ServerResponse, { status, type, text }: Said): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(response.req.method === 'HEAD' ? undefined : text)
}
