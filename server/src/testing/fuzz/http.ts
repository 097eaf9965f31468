import { connect, type Socket } from 'node:net'
import { patienceMs } from '../harness/waiting.ts'

/**
 * A minimal HTTP/1.1 client that sends a request byte for byte, even if it is invalid, and returns the whole response.
 * A connection sends one request at a time, and reconnects if the server has closed the connection.
 */
export interface Request {
  method: string
  /** As sent in the request line. */
  path: string
  headers: readonly (readonly [name: string, value: string])[]
  body?: string | Buffer | undefined
  /** Sent in pieces of these sizes, with `Transfer-Encoding: chunked`. */
  chunks?: readonly number[] | undefined
  /** Sent instead of all fields above, for requests that these fields cannot express. */
  raw?: Buffer | undefined
}

export interface HttpResponse {
  status: number
  /** Names in lower case. Values of a repeated header are joined by a comma. */
  headers: ReadonlyMap<string, string>
  text: string
}

export class NoResponse extends Error {
  override readonly name = 'NoResponse'
}

export function bytesOf(request: Request, host: string): Buffer {
  if (request.raw) return request.raw
  const { method, path, headers, body, chunks } = request
  const payload = typeof body === 'string' ? Buffer.from(body) : body
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`]
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  if (chunks) lines.push('transfer-encoding: chunked')
  else if (payload) lines.push(`content-length: ${payload.length}`)
  // Latin-1 maps every character of a path or header to one byte.
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  if (!payload) return chunks ? Buffer.concat([head, Buffer.from('0\r\n\r\n')]) : head
  return Buffer.concat([head, chunks ? inChunks(payload, chunks) : payload])
}

function inChunks(payload: Buffer, sizes: readonly number[]): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0, n = 0; at < payload.length; n++) {
    const piece = payload.subarray(at, at + Math.max(1, sizes[n % sizes.length] ?? 1))
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    at += piece.length
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')])
}

// Idle connections are closed before the server would close them, because a request sent at that moment would be lost.
const idleMs = 30_000

export class Connection {
  readonly #port: number
  readonly #host: string
  #socket: Socket | undefined
  #idle: NodeJS.Timeout | undefined
  #received: Buffer = Buffer.alloc(0)
  #waiting: { method: string; resolve(response: HttpResponse): void; reject(error: Error): void } | undefined

  constructor(url: string) {
    const { port, host } = new URL(url)
    this.#port = Number(port)
    this.#host = host
  }

  async send(request: Request): Promise<HttpResponse> {
    clearTimeout(this.#idle)
    const socket = this.#socket ?? this.#open()
    const bytes = bytesOf(request, this.#host)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail('no response in time'), patienceMs)
      this.#waiting = {
        method: request.method,
        resolve: (response) => {
          clearTimeout(timer)
          this.#idle = setTimeout(() => this.close(), idleMs).unref()
          resolve(response)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      }
      socket.write(bytes)
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
    this.#received = Buffer.alloc(0)
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    const ended = (why: string) => {
      if (this.#socket === socket) this.#fail(why)
    }
    socket.on('data', (chunk) => {
      if (this.#socket !== socket) return
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
      this.#deliver(false)
    })
    socket.on('error', ({ message }) => ended(message))
    socket.on('close', () => {
      if (this.#socket === socket) this.#deliver(true)
      ended('the connection was closed')
    })
    return socket
  }

  #fail(why: string): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.close()
    waiting?.reject(new NoResponse(why))
  }

  #deliver(isOver: boolean): void {
    const waiting = this.#waiting
    if (!waiting) return
    const parsed = parseResponse(this.#received, waiting.method, isOver)
    if (!parsed) return
    this.#received = this.#received.subarray(parsed.length)
    if (parsed.response.status < 200) {
      this.#deliver(isOver)
      return
    }
    this.#waiting = undefined
    // Any further bytes are not a response to any of this client's requests.
    if (parsed.response.headers.get('connection') === 'close' || this.#received.length > 0) this.close()
    waiting.resolve(parsed.response)
  }
}

function parseResponse(
  received: Buffer,
  method: string,
  isOver: boolean,
): { response: HttpResponse; length: number } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = received.toString('latin1', 0, end).split('\r\n')
  const status = Number(first.split(' ')[1])
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const known = headers.get(name)
    headers.set(name, known === undefined ? value : `${known}, ${value}`)
  }
  const body = bodyOf(received, end + 4, method, status, headers, isOver)
  return body && { response: { status, headers, text: body.text }, length: body.end }
}

function bodyOf(
  received: Buffer,
  start: number,
  method: string,
  status: number,
  headers: ReadonlyMap<string, string>,
  isOver: boolean,
): { text: string; end: number } | undefined {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return { text: '', end: start }
  if (headers.get('transfer-encoding') === 'chunked') return fromChunks(received, start)
  const length = headers.get('content-length')
  const end = length === undefined ? (isOver ? received.length : Infinity) : start + Number(length)
  return end <= received.length ? { text: received.toString('utf8', start, end), end } : undefined
}

function fromChunks(received: Buffer, start: number): { text: string; end: number } | undefined {
  const pieces: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(received.toString('latin1', at, lineEnd), 16)
    at = lineEnd + 2 + size + 2
    if (received.length < at) return undefined
    if (size === 0) return { text: Buffer.concat(pieces).toString(), end: at }
    pieces.push(received.subarray(lineEnd + 2, at - 2))
  }
}
