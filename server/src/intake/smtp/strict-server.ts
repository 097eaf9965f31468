import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { metrics } from '../../platform/telemetry/metrics.ts'
import type { ConnectionLimit } from './connection-limit.ts'

/**
 * smtp-server, stricter: lines end in CRLF and in nothing else, commands and mail alike, nobody stays for ever or speaks
 * too slowly, and everybody is counted from the moment they connect.
 *
 * smtp-server itself ends a mail at CRLF.CRLF alone, but takes a lone LF as the end of a command. What one machine
 * reads as one line and the next as two is how mail is smuggled past the first (RFC 5321 §2.3.8: a lone CR or LF must
 * not be sent, and must not be taken for a line end).
 */
export interface Strictness {
  /** As which it is counted. */
  listener: 'bounces' | 'submission' | 'submissions' | 'inbound'
  /** Who is inside, by network. */
  crowd: ConnectionLimit
  /** How long anybody stays. */
  lifetimeMs: number
  /** How often anybody is refused something, before being shown out. */
  maxErrors: number
  /** How long a TLS handshake may take, at the beginning or after STARTTLS. */
  handshakeMs?: number
  /** How long a mail may take, however slowly it comes; from then on it must have come at `leastSpeed` on average. */
  slowMs?: number
}

const patience = { handshakeMs: 10_000, slowMs: 30_000 }
/** Of a mail that comes in, in octets per second. Whoever is slower holds memory for little. */
const leastSpeed = 1024
const lateMs = 1_000
/** Mail that is larger than it may be is read to its end, to be refused in the proper way; but not for ever. */
const readBeyond = 4

// An enhanced status code of our own choice; the library has one for each code, whatever it is about.
const hasStatus = (text: unknown): boolean =>
  typeof text === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(text)

class StrictConnection extends SMTPConnection {
  readonly #strictness: Required<Strictness>
  readonly #onGone: () => void
  #errors = 0
  #lifetime: NodeJS.Timeout | undefined
  #pace: NodeJS.Timeout | undefined

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: ConstructorParameters<typeof SMTPConnection>[2],
    strictness: Required<Strictness>,
    onGone: () => void,
  ) {
    super(server, socket, options)
    this.#strictness = strictness
    this.#onGone = onGone
  }

  override init(): void {
    // Whoever sends a byte a minute never meets the time-out of an idle connection.
    const end = () => {
      // A mail that is whole is answered first: its sender would send it again.
      if (this._dataStream && this._parser && !this._parser._dataMode)
        this.#lifetime = setTimeout(end, lateMs)
      else this.send(421, '4.4.2 You have been here for too long')
    }
    this.#lifetime = setTimeout(end, this.#strictness.lifetimeMs).unref()
    super.init()
  }

  /** Called at the end of every connection. Listeners of its socket are not: STARTTLS takes them all off. */
  override _onClose(): void {
    clearTimeout(this.#lifetime)
    clearTimeout(this.#pace)
    this.#onGone()
    super._onClose()
  }

  /** The one place where the socket that STARTTLS makes can be had before its handshake. */
  override _armTimeout(socket?: Socket): void {
    super._armTimeout(socket)
    if (socket && this._upgrading) endHandshakeIn(this.#strictness.handshakeMs, socket)
  }

  override handler_DATA(command: Buffer, callback: () => void): void {
    super.handler_DATA(command, callback)
    clearTimeout(this.#pace)
    this.#watchPace(performance.now())
  }

  #watchPace(since: number): void {
    const parser = this._parser || undefined
    if (!parser?._dataMode) return
    const mayTakeMs = Math.max(this.#strictness.slowMs, (parser.dataBytes / leastSpeed) * 1000)
    const leftMs = since + mayTakeMs - performance.now()
    if (leftMs > 0) this.#pace = setTimeout(() => this.#watchPace(since), leftMs).unref()
    else this.send(421, '4.4.2 The mail comes too slowly')
  }

  override send(code: number, text?: string | string[] | null, context?: string | false): void {
    super.send(code, text, hasStatus(text) ? false : context)
    if (code >= 400) this.#count(code)
    if (code >= 400 && code !== 421 && ++this.#errors >= this.#strictness.maxErrors) {
      super.send(421, '4.7.0 Too many errors', false)
    }
  }

  #count(code: number): void {
    metrics.smtpRefusals.add({ listener: this.#strictness.listener, status: code < 500 ? '4xx' : '5xx' })
  }

  /** The one place through which everything that a client says comes, in the clear and after STARTTLS. */
  override _createParser() {
    const parser = super._createParser()
    const take = parser.write.bind(parser) as (chunk: Buffer) => boolean
    const lines = new LineEnds()
    const most = (this._server.options.size ?? Number.POSITIVE_INFINITY) * readBeyond
    parser.write = (chunk: Buffer) => {
      if (!lines.areCrlf(chunk)) return this.#end(521, '5.5.2 Lines end in CRLF, not in CR or LF alone')
      if (parser.dataBytes > most) return this.#end(552, '5.3.4 That is far too much')
      return take(chunk)
    }
    return parser
  }

  #end(code: number, text: string): true {
    this.send(code, text)
    this.close()
    return true
  }
}

export class StrictSmtpServer extends SMTPServer {
  readonly #strictness: Required<Strictness>
  readonly #leaves = new WeakMap<Socket, () => void>()

  constructor({ listener, crowd, lifetimeMs, maxErrors, ...options }: SMTPServerOptions & Strictness) {
    const { handshakeMs, slowMs } = { ...patience, ...options }
    super(options)
    this.#strictness = { listener, crowd, lifetimeMs, maxErrors, handshakeMs, slowMs }
  }

  /** Whoever says nothing counts, too: before a handshake the library knows of no limit but that for all. */
  override _acceptSocket(socket: Socket, handshake: boolean): (() => void) | false {
    const { crowd, listener } = this.#strictness
    metrics.smtpConnections.add({ listener })
    const leave = crowd.enter(socket.remoteAddress ?? '')
    if (!leave) {
      metrics.smtpRefusals.add({ listener, status: '4xx' })
      socket.on('error', () => {})
      // Before TLS there is nothing that could be said.
      if (handshake) socket.destroy()
      else socket.end('421 4.7.0 Too many connections\r\n', () => socket.destroy())
      return false
    }
    metrics.smtpOpen.add({ listener }, 1)
    let isOpen = true
    const gone = () => {
      leave()
      if (isOpen) metrics.smtpOpen.add({ listener }, -1)
      isOpen = false
    }
    this.#leaves.set(socket, gone)
    socket.once('close', gone)
    return super._acceptSocket(socket, handshake)
  }

  override _upgrade(socket: Socket, callback: (error: Error | null, tlsSocket?: TLSSocket) => void): void {
    super._upgrade(socket, callback)
    const secured = this._pendingSockets.get(socket)
    if (secured) endHandshakeIn(this.#strictness.handshakeMs, secured)
  }

  override connect(socket: Socket, options?: ConstructorParameters<typeof SMTPConnection>[2]): void {
    const leave = this.#leaves.get(socket) ?? (() => {})
    const connection = new StrictConnection(this, socket, options, this.#strictness, leave)
    this.connections.add(connection)
    connection.on('error', (error) => this._onError(error))
    connection.on('connect', (info) => this._onClientConnect(info))
    connection.init()
  }
}

/** However it is kept going, octet by octet. */
function endHandshakeIn(ms: number, socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), ms).unref()
  for (const event of ['secure', 'close']) socket.once(event, () => clearTimeout(timer))
}

const [lf, cr] = [0x0a, 0x0d]

/** Looks at a stream chunk by chunk; a CR may be the last byte of one and its LF the first of the next. */
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
