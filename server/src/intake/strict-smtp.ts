import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'

/**
 * smtp-server, stricter: lines end in CRLF and in nothing else, commands and mail alike, and nobody stays for ever.
 *
 * smtp-server itself ends a mail at CRLF.CRLF alone, but takes a lone LF as the end of a command. What one machine
 * reads as one line and the next as two is how mail is smuggled past the first (RFC 5321 §2.3.8: a lone CR or LF must
 * not be sent, and must not be taken for a line end).
 */
export interface Strictness {
  /** How long anybody stays. */
  lifetimeMs: number
  /** How often anybody is refused something, before being shown out. */
  maxErrors: number
}

const lateMs = 1_000
/** Mail that is larger than it may be is read to its end, to be refused in the proper way; but not for ever. */
const readBeyond = 4

// An enhanced status code of our own choice; the library has one for each code, whatever it is about.
const hasStatus = (text: unknown): boolean =>
  typeof text === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(text)

class StrictConnection extends SMTPConnection {
  readonly #strictness: Strictness
  #errors = 0

  constructor(
    server: SMTPServer,
    socket: Socket,
    options: ConstructorParameters<typeof SMTPConnection>[2],
    strictness: Strictness,
  ) {
    super(server, socket, options)
    this.#strictness = strictness
  }

  override init(): void {
    // Whoever sends a byte a minute never meets the time-out of an idle connection.
    const end = () => {
      // A mail that is whole is answered first: its sender would send it again.
      if (this._dataStream && this._parser && !this._parser._dataMode) timer = setTimeout(end, lateMs)
      else this.send(421, '4.4.2 You have been here for too long')
    }
    let timer = setTimeout(end, this.#strictness.lifetimeMs)
    timer.unref()
    this._socket.once('close', () => clearTimeout(timer))
    super.init()
  }

  override send(code: number, text?: string | string[] | null, context?: string | false): void {
    super.send(code, text, hasStatus(text) ? false : context)
    if (code >= 400 && code !== 421 && ++this.#errors >= this.#strictness.maxErrors) {
      super.send(421, '4.7.0 Too many errors', false)
    }
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
  readonly #strictness: Strictness

  constructor({ lifetimeMs, maxErrors, ...options }: SMTPServerOptions & Strictness) {
    super(options)
    this.#strictness = { lifetimeMs, maxErrors }
  }

  override connect(socket: Socket, options?: ConstructorParameters<typeof SMTPConnection>[2]): void {
    const connection = new StrictConnection(this, socket, options, this.#strictness)
    this.connections.add(connection)
    connection.on('error', (error) => this._onError(error))
    connection.on('connect', (info) => this._onClientConnect(info))
    connection.init()
  }
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
