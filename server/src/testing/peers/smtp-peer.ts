import { createServer, type Server, type Socket } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { resetSocket } from './reset-socket.ts'

/** The peer's reaction to a command: a reply, or the fault that replaces it. */
export type Answer = string | 'silence' | 'reset' | 'close'

export interface Script {
  greeting?: Answer
  /** Keyed by verb in upper case. `.` stands for the end of the data, and `BODY` for its first octets. */
  answers?: Record<string, Answer>
  /** Promises that delay the reply, keyed by verb or `greeting`. */
  waitsFor?: Record<string, Promise<unknown>>
  /** The delay before each octet of a reply. */
  octetMs?: number
  extensions?: string[]
  /** Accepts every end-of-data sequence that any known MTA accepts (SMTP smuggling), and drops NULs. */
  isLenient?: boolean
}

export interface TakenMail {
  /** The lines of the envelope with their parameters. */
  from: string
  to: string[]
  /** The bytes received, without the end of data and with dot-stuffing. */
  raw: Buffer
}

const replies: Record<string, string> = {
  MAIL: '250 2.1.0 Ok',
  RCPT: '250 2.1.5 Ok',
  DATA: '354 End data with <CR><LF>.<CR><LF>',
  RSET: '250 2.0.0 Ok',
  NOOP: '250 2.0.0 Ok',
  QUIT: '221 2.0.0 Bye',
}

const strictEnd = /(?:^|\r\n)\.\r\n/
const lenientEnd = /(?:^|\r\n|\n|\r)\.(?:\r\n|\n|\r)/

/** A scriptable SMTP server that records commands and messages. The script can change at any time. */
export class SmtpPeer {
  script: Script = {}
  sessions = 0
  readonly mails: TakenMail[] = []
  readonly commands: string[] = []
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  static async start(script: Script = {}): Promise<SmtpPeer> {
    const peer = new SmtpPeer()
    peer.script = script
    await peer.listen()
    cleanUp(() => peer.stop())
    return peer
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.#port}`
  }

  get open(): number {
    return this.#sockets.size
  }

  /** Listens on the same port as before. */
  async listen(): Promise<void> {
    this.#server = createServer((socket) => this.#greet(socket))
    await new Promise<void>((resolve) => this.#server?.listen(this.#port, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (typeof address === 'object' && address) this.#port = address.port
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve) ?? resolve(undefined))
    for (const socket of this.#sockets) resetSocket(socket)
    await closed
  }

  cutOff(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #greet(socket: Socket): void {
    this.sessions++
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
    socket.setNoDelay(true)
    const session = new Session(this, socket)
    socket.on('data', (chunk) => session.hear(chunk))
    void session.answer('greeting', this.script.greeting ?? '220 peer.example ESMTP')
  }
}

class Session {
  readonly #peer: SmtpPeer
  readonly #socket: Socket
  #heard = Buffer.alloc(0)
  #isInData = false
  #isBusy = false
  #from = ''
  #to: string[] = []

  constructor(peer: SmtpPeer, socket: Socket) {
    this.#peer = peer
    this.#socket = socket
  }

  hear(chunk: Buffer): void {
    this.#heard = Buffer.concat([this.#heard, chunk])
    if (!this.#isBusy) void this.#goOn()
  }

  async #goOn(): Promise<void> {
    this.#isBusy = true
    while (
      !this.#socket.destroyed &&
      (this.#isInData ? await this.#takeData() : await this.#takeCommand())
    ) {}
    this.#isBusy = false
  }

  async #takeCommand(): Promise<boolean> {
    const end = this.#heard.indexOf('\n')
    if (end < 0) return false
    const line = this.#heard.toString('utf8', 0, end).trim()
    this.#heard = this.#heard.subarray(end + 1)
    if (line === '') return true
    this.#peer.commands.push(line)
    const verb = (line.split(' ')[0] ?? '').toUpperCase()
    const reply = this.#peer.script.answers?.[verb] ?? this.#ordinary(verb)
    if (verb === 'MAIL' && reply.startsWith('2')) [this.#from, this.#to] = [line, []]
    if (verb === 'RSET' || verb === 'EHLO') [this.#from, this.#to] = ['', []]
    if (verb === 'RCPT' && reply.startsWith('2')) this.#to.push(line)
    if (verb === 'DATA' && reply.startsWith('3')) this.#isInData = true
    await this.answer(verb, reply)
    if (verb === 'QUIT') this.#socket.end()
    return true
  }

  #ordinary(verb: string): string {
    const extensions = this.#peer.script.extensions ?? [
      'PIPELINING',
      'SIZE 30000000',
      'DSN',
      '8BITMIME',
      'SMTPUTF8',
    ]
    if (verb === 'EHLO') {
      const lines = ['peer.example', 'ENHANCEDSTATUSCODES', ...extensions]
      return lines.map((line, n) => `250${n < lines.length - 1 ? '-' : ' '}${line}`).join('\r\n')
    }
    if (verb === 'MAIL' && this.#from !== '') return '503 5.5.1 Error: nested MAIL command'
    if (verb === 'DATA' && this.#to.length === 0) return '503 5.5.1 Error: need RCPT command'
    return replies[verb] ?? '502 5.5.2 Error: command not recognized'
  }

  async #takeData(): Promise<boolean> {
    const { isLenient, answers } = this.#peer.script
    const body = answers?.['BODY']
    if (body !== undefined && this.#heard.length > 0) {
      await this.answer('BODY', body)
      return false
    }
    const text = this.#heard.toString('latin1')
    const found = (isLenient ? lenientEnd : strictEnd).exec(isLenient ? text.replaceAll('\0', '') : text)
    if (!found) return false
    const raw = Buffer.from(found.input.slice(0, found.index), 'latin1')
    this.#heard = Buffer.from(found.input.slice(found.index + found[0].length), 'latin1')
    this.#isInData = false
    const mail = { from: this.#from, to: this.#to, raw }
    const reply = answers?.['.'] ?? `250 2.0.0 Ok: queued as Q${this.#peer.mails.length}`
    // The message counts as accepted even if the reply is lost.
    if (!/^[45]/.test(reply)) this.#peer.mails.push(mail)
    ;[this.#from, this.#to] = ['', []]
    await this.answer('.', reply)
    return true
  }

  async answer(verb: string, answer: Answer): Promise<void> {
    const { waitsFor, octetMs } = this.#peer.script
    await waitsFor?.[verb]
    if (answer === 'silence') return
    if (answer === 'reset') resetSocket(this.#socket)
    if (answer === 'close') this.#socket.end()
    if (answer === 'reset' || answer === 'close' || this.#socket.destroyed) return
    const line = `${answer}\r\n`
    if (octetMs === undefined) {
      this.#socket.write(line)
      return
    }
    for (const octet of line) {
      if (this.#socket.destroyed) return
      this.#socket.write(octet)
      await new Promise((resolve) => setTimeout(resolve, octetMs))
    }
  }
}
