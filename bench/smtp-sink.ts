import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/**
 * An MTA that accepts every message immediately and stores nothing. It implements the minimum of SMTP (RFC 5321) that a
 * well-behaved client needs, so that the sender is the bottleneck.
 */
export interface Received {
  from: string
  to: string
  /** The header of the message as received. */
  header: string
}

export type Pace = (to: string, closed: Promise<void>) => number | Promise<void>

export interface SmtpSink {
  port: number
  close(): void
}

/**
 * `onMail` is called before a message is acknowledged. `paceOf` returns the delay, either as a number of ms or as a
 * promise to wait for; `closed` resolves when the client disconnects. `refuse` returns the reply that rejects the
 * recipient, or undefined to accept the recipient.
 */
export async function startSmtpSink(
  onMail: (mail: Received) => void,
  paceOf: Pace,
  refuse: (recipient: string) => string | undefined = () => undefined,
): Promise<SmtpSink> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // A message does not count if the client disconnects in the middle of it.
    socket.on('error', () => socket.destroy())
    const session = new Session(socket, onMail, paceOf, refuse)
    socket.on('data', (chunk) => session.read(chunk))
    socket.write('220 sink.test ESMTP\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const extensions = ['PIPELINING', 'SIZE 52428800', '8BITMIME', 'SMTPUTF8', 'ENHANCEDSTATUSCODES']
const greeting = ['sink.test', ...extensions].map((word) => `250-${word}\r\n`).join('')
const endOfData = Buffer.from('\r\n.\r\n')
const endOfHeader = Buffer.from('\r\n\r\n')

class Session {
  readonly #socket: Socket
  readonly #onMail: (mail: Received) => void
  readonly #paceOf: Pace
  readonly #closed: Promise<void>
  readonly #refuse: (recipient: string) => string | undefined
  #envelope = { from: '', to: '' }
  #isData = false
  #rest: Buffer = Buffer.alloc(0)

  constructor(
    socket: Socket,
    onMail: (mail: Received) => void,
    paceOf: Pace,
    refuse: (recipient: string) => string | undefined,
  ) {
    this.#closed = new Promise((resolve) => socket.once('close', () => resolve()))
    this.#socket = socket
    this.#onMail = onMail
    this.#paceOf = paceOf
    this.#refuse = refuse
  }

  read(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    while (this.#isData ? this.#takeMail() : this.#takeCommand());
  }

  #takeCommand(): boolean {
    const end = this.#rest.indexOf('\r\n')
    if (end < 0) return false
    const line = this.#rest.toString('latin1', 0, end)
    this.#rest = this.#rest.subarray(end + 2)
    this.#socket.write(this.#answer(line))
    if (/^quit/i.test(line)) this.#socket.end()
    return true
  }

  #answer(line: string): string {
    const [, verb = ''] = /^(\w+)/.exec(line) ?? []
    const [, address = ''] = /<([^>]*)>/.exec(line) ?? []
    switch (verb.toUpperCase()) {
      case 'EHLO':
        return `${greeting}250 DSN\r\n`
      case 'MAIL':
        this.#envelope = { from: address, to: '' }
        return '250 2.1.0 Ok\r\n'
      case 'RCPT':
        this.#envelope.to = address
        return `${this.#refuse(address) ?? '250 2.1.5 Ok'}\r\n`
      case 'DATA':
        this.#isData = true
        return '354 Go on\r\n'
      case 'QUIT':
        return '221 2.0.0 Bye\r\n'
      default:
        return '250 2.0.0 Ok\r\n'
    }
  }

  #takeMail(): boolean {
    const end = this.#rest.indexOf(endOfData)
    if (end < 0) return false
    const header = this.#rest.toString('latin1', 0, this.#rest.indexOf(endOfHeader))
    this.#rest = this.#rest.subarray(end + endOfData.length)
    this.#isData = false
    this.#onMail({ ...this.#envelope, header })
    const say = () => this.#socket.write('250 2.0.0 Ok: queued as SINK\r\n')
    const pace = this.#paceOf(this.#envelope.to, this.#closed)
    if (typeof pace === 'object') void pace.then(say)
    else if (pace === 0) say()
    else setTimeout(say, pace)
    return true
  }
}
