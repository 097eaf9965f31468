import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { eventually } from '../harness/waiting.ts'
import { makeCertificate } from './certificate.ts'

/** What a customer runs to hear of events: a real HTTPS server, whose answers a test changes while it runs. */
export interface Receiver {
  /** With a path of its own for each endpoint that a test makes: `${url}/orders`. */
  url: string
  port: number
  /** For whoever is to trust it. */
  ca: string
  /** With which a `postern` lets endpoints be here. */
  settings: Record<string, string>
  /** Everything that arrived whole, whatever it was answered. */
  got: Received[]
  /** From now on; the last word is for all paths that no other is for. */
  answer(reply: Reply, path?: string): void
  /** Resolves once so many have arrived, at a path if one is named. */
  until(count: number, path?: string): Promise<Received[]>
  /** How many requests at this path wait for their answer at this moment. */
  pending(path: string): number
  /** Closes every connection. Requests that wait for an answer fail. */
  disconnect(): void
  /** Nobody listens any more, and whoever is connected is cut off; and back again, at the same port. */
  down(): Promise<void>
  up(): Promise<void>
}

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export type Reply =
  /** With `after`, the answer is sent once that promise is fulfilled. */
  | { status: number; headers?: Record<string, string>; body?: string | Buffer; after?: Promise<unknown> }
  /** The connection is ended without a word; no answer ever comes; the answer begins and never ends. */
  | 'reset'
  | 'hang'
  | 'endless'
  /** Decided anew for each request. */
  | ((received: Received) => Reply)

/** For a test file, at whose end it is closed. */
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
