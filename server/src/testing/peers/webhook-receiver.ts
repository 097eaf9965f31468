import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { eventually } from '../harness/waiting.ts'
import { makeCertificate } from './certificate.ts'

/** A customer's webhook receiver: a real HTTPS server with responses that a test can change at any time. */
export interface Receiver {
  /** Tests add a path per endpoint: `${url}/orders`. */
  url: string
  port: number
  /** The CA certificate that clients must trust. */
  ca: string
  /** Settings that allow endpoints at this receiver. */
  settings: Record<string, string>
  /** Every complete request, regardless of the response. */
  got: Received[]
  /** Sets the response for a path, or the default for all other paths. */
  answer(reply: Reply, path?: string): void
  /** Resolves when `count` requests have arrived, optionally at one path. */
  until(count: number, path?: string): Promise<Received[]>
  /** The number of requests at this path that are waiting for a response. */
  pending(path: string): number
  /** Closes every connection. Requests that are waiting for a response fail. */
  disconnect(): void
  /** Stops listening and closes all connections. `up` listens again on the same port. */
  down(): Promise<void>
  up(): Promise<void>
}

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export type Reply =
  /** With `after`, the response is sent when that promise resolves. */
  | { status: number; headers?: Record<string, string>; body?: string | Buffer; after?: Promise<unknown> }
  /** `reset` closes the connection, `hang` never responds, and `endless` starts a response that never ends. */
  | 'reset'
  | 'hang'
  | 'endless'
  /** Called for each request. */
  | ((received: Received) => Reply)

/** Closed after the file's tests. */
export async function startReceiver(): Promise<Receiver> {
  const certificate = makeCertificate()
  const replies = new Map<string, Reply>()
  const got: Received[] = []
  const pending = new Map<string, number>()
  const pendingAt = (path: string): number => pending.get(path) ?? 0
  const respond = async (received: Received, request: IncomingMessage, response: ServerResponse) => {
    let reply: Reply = replies.get(received.path) ?? replies.get('') ?? { status: 204 }
    while (typeof reply === 'function') reply = reply(received)
    if (reply === 'reset') return void request.socket.destroy()
    if (reply === 'hang') return
    if (reply === 'endless') return void response.writeHead(200).write('and so on')
    const { status, headers = {}, body = '', after } = reply
    await after
    response.writeHead(status, headers).end(body)
  }
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const { url: path = '', headers } = request
      const received = { path, headers, body: Buffer.concat(chunks).toString() }
      got.push(received)
      pending.set(path, pendingAt(path) + 1)
      response.once('close', () => pending.set(path, pendingAt(path) - 1))
      void respond(received, request, response)
    })
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  const down = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  cleanUp(async () => {
    if (server.listening) await down()
  })
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    ca: certificate.cert.toString(),
    settings: {
      POSTERN_WEBHOOK_PORTS: String(port),
      POSTERN_PRIVATE_NETWORKS: '127.0.0.1',
      POSTERN_WEBHOOK_CA_FILE: certificate.files.certificate,
    },
    got,
    answer: (reply, path = '') => void replies.set(path, reply),
    async until(count, path) {
      const those = () => (path === undefined ? got : got.filter((one) => one.path === path))
      const what = `${count} requests have arrived${path === undefined ? '' : ` at ${path}`}`
      await eventually(what, () => those().length >= count, { everyMs: 10 })
      return those()
    },
    pending: pendingAt,
    disconnect: () => server.closeAllConnections(),
    down,
    up: () => listen(port),
  }
}
