// smtp-server with stricter rules: lines in commands and mail data end only in CRLF, sessions have a maximum
// lifetime and a minimum data rate, and every connection is counted from the moment it is accepted.
//
// smtp-server ends mail data only at CRLF.CRLF, but accepts a bare LF as the end of a command. SMTP smuggling
// relies on text that one server reads as one line and the next server reads as two (RFC 5321 §2.3.8: a bare
// CR or LF must not be sent and must not be treated as a line ending).

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { Counter, Gauge } from '../../platform/telemetry/metrics.ts'
import type { ConnectionLimit } from './connection-limit.ts'

const listeners = ['bounces', 'submission', 'submissions', 'inbound'] as const
const connections = new Counter('postern_smtp_connections_total', 'Connections to the intake, by listener.', {
  listener: listeners,
})
const openConnections = new Gauge(
  'postern_smtp_connections',
  'Open connections to the intake, by listener.',
  {
    listener: listeners,
  },
)
const refusals = new Counter(
  'postern_smtp_refusals_total',
  'Negative SMTP replies from the intake, by listener and status class.',
  {
    listener: listeners,
    status: ['4xx', '5xx'],
  },
)

export interface Strictness {
  /** The metric label. */
  listener: (typeof listeners)[number]
  connectionLimit: ConnectionLimit
  /** Maximum duration of a session. */
  lifetimeMs: number
  /** Number of error replies after which a session is closed. */
  maxErrors: number
  /** Timeout for a TLS handshake, implicit or after STARTTLS. */
  handshakeMs?: number
  /**
   * How long mail data can arrive at any rate; after that, its average rate must be at least
   * `minBytesPerSecond`.
   */
  slowMs?: number
}

const defaultTimeouts = { handshakeMs: 10_000, slowMs: 30_000 }
/** Minimum rate of mail data. A slower client ties up memory for little benefit. */
const minBytesPerSecond = 1024
const replyGraceMs = 1_000
/**
 * An oversized message is read to its end, up to this multiple of the size limit, so that a proper reply can
 * be sent.
 */
const oversizeFactor = 4

// The text already contains an enhanced status code; the library would add one derived only from the reply
// code.
const hasStatus = (text: unknown): boolean =>
  typeof text === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(text)

class StrictConnection extends SMTPConnection {
  readonly #strictness: Required<Strictness>
  readonly #onClosed: () => void
  #errors = 0
  #lifetime: NodeJS.Timeout | undefined
  #dataRateTimer: NodeJS.Timeout | undefined

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: ConstructorParameters<typeof SMTPConnection>[2],
    strictness: Required<Strictness>,
    onClosed: () => void,
  ) {
    super(server, socket, options)
    this.#strictness = strictness
    this.#onClosed = onClosed
  }

  override init(): void {
    // A client that sends one byte per minute never reaches the idle timeout.
    const end = () => {
      // A complete message gets its reply first: otherwise the client would send it again.
      if (this._dataStream && this._parser && !this._parser._dataMode)
        this.#lifetime = setTimeout(end, replyGraceMs)
      else this.send(421, '4.4.2 Session time limit exceeded')
    }
    this.#lifetime = setTimeout(end, this.#strictness.lifetimeMs).unref()
    super.init()
  }

  /** Called at the end of every connection, unlike socket listeners, which STARTTLS removes. */
  override _onClose(): void {
    clearTimeout(this.#lifetime)
    clearTimeout(this.#dataRateTimer)
    this.#onClosed()
    super._onClose()
  }

  /** The only hook that receives the STARTTLS socket before its handshake. */
  override _armTimeout(socket?: Socket): void {
    super._armTimeout(socket)
    if (socket && this._upgrading) endHandshakeIn(this.#strictness.handshakeMs, socket)
  }

  override handler_DATA(command: Buffer, callback: () => void): void {
    super.handler_DATA(command, callback)
    clearTimeout(this.#dataRateTimer)
    this.#checkDataRate(performance.now())
  }

  #checkDataRate(since: number): void {
    const parser = this._parser || undefined
    if (!parser?._dataMode) return
    const allowedMs = Math.max(this.#strictness.slowMs, (parser.dataBytes / minBytesPerSecond) * 1000)
    const leftMs = since + allowedMs - performance.now()
    if (leftMs > 0) this.#dataRateTimer = setTimeout(() => this.#checkDataRate(since), leftMs).unref()
    else this.send(421, '4.4.2 Message data received too slowly')
  }

  override send(code: number, text?: string | string[] | null, context?: string | false): void {
    super.send(code, text, hasStatus(text) ? false : context)
    if (code >= 400) this.#count(code)
    if (code >= 400 && code !== 421 && ++this.#errors >= this.#strictness.maxErrors) {
      super.send(421, '4.7.0 Too many errors', false)
    }
  }

  #count(code: number): void {
    refusals.add({ listener: this.#strictness.listener, status: code < 500 ? '4xx' : '5xx' })
  }

  /** The only hook through which all input passes, in cleartext and after STARTTLS. */
  override _createParser() {
    const parser = super._createParser()
    const write = parser.write.bind(parser) as (chunk: Buffer) => boolean
    const lineEnds = new LineEnds()
    const maxDataBytes = (this._server.options.size ?? Number.POSITIVE_INFINITY) * oversizeFactor
    parser.write = (chunk: Buffer) => {
      if (!lineEnds.areCrlf(chunk)) return this.#closeWith(521, '5.5.2 Error: bare <CR> or <LF> received')
      if (parser.dataBytes > maxDataBytes)
        return this.#closeWith(552, '5.3.4 Message size exceeds fixed limit')
      return write(chunk)
    }
    return parser
  }

  #closeWith(code: number, text: string): true {
    this.send(code, text)
    this.close()
    return true
  }
}

export class StrictSmtpServer extends SMTPServer {
  readonly #strictness: Required<Strictness>
  readonly #releases = new WeakMap<Socket, () => void>()

  constructor({
    listener,
    connectionLimit,
    lifetimeMs,
    maxErrors,
    ...options
  }: SMTPServerOptions & Strictness) {
    const { handshakeMs, slowMs } = { ...defaultTimeouts, ...options }
    super(options)
    this.#strictness = { listener, connectionLimit, lifetimeMs, maxErrors, handshakeMs, slowMs }
  }

  /**
   * Silent clients are also counted: before the handshake, the library only has a limit for all clients
   * together.
   */
  override _acceptSocket(socket: Socket, handshake: boolean): (() => void) | false {
    const { connectionLimit, listener } = this.#strictness
    connections.add({ listener })
    const release = connectionLimit.acquire(socket.remoteAddress ?? '')
    if (!release) {
      refusals.add({ listener, status: '4xx' })
      socket.on('error', () => {})
      // No reply can be sent before TLS.
      if (handshake) socket.destroy()
      else socket.end('421 4.7.0 Too many connections\r\n', () => socket.destroy())
      return false
    }
    openConnections.add({ listener }, 1)
    let isOpen = true
    const onClosed = () => {
      release()
      if (isOpen) openConnections.add({ listener }, -1)
      isOpen = false
    }
    this.#releases.set(socket, onClosed)
    socket.once('close', onClosed)
    return super._acceptSocket(socket, handshake)
  }

  override _upgrade(socket: Socket, callback: (error: Error | null, tlsSocket?: TLSSocket) => void): void {
    super._upgrade(socket, callback)
    const secured = this._pendingSockets.get(socket)
    if (secured) endHandshakeIn(this.#strictness.handshakeMs, secured)
  }

  override connect(socket: Socket, options?: ConstructorParameters<typeof SMTPConnection>[2]): void {
    const onClosed = this.#releases.get(socket) ?? (() => {})
    const connection = new StrictConnection(this, socket, options, this.#strictness, onClosed)
    this.connections.add(connection)
    connection.on('error', (error) => this._onError(error))
    connection.on('connect', (info) => this._onClientConnect(info))
    connection.init()
  }
}

/** Applies even if the client keeps the connection busy by sending one octet at a time. */
function endHandshakeIn(ms: number, socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref()
  for (const event of ['secure', 'close']) socket.once(event, () => clearTimeout(timer))
}

const [lf, cr] = [0x0a, 0x0d]

/**
 * Checks a stream chunk by chunk; a CR can be the last byte of one chunk and its LF the first of the next.
 */
export class LineEnds {
  #isAfterCr = false

  areCrlf(chunk: Uint8Array): boolean {
    if (chunk.length === 0) return true
    if (this.#isAfterCr && chunk[0] !== lf) return false
    if (!this.#isAfterCr && chunk[0] === lf) return false
    for (let at = chunk.indexOf(lf, 1); at >= 0; at = chunk.indexOf(lf, at + 1)) {
      if (chunk[at - 1] !== cr) return false
    }
    for (let at = chunk.indexOf(cr); at >= 0 && at < chunk.length - 1; at = chunk.indexOf(cr, at + 1)) {
      if (chunk[at + 1] !== lf) return false
    }
    this.#isAfterCr = chunk[chunk.length - 1] === cr
    return true
  }
}
