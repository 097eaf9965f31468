import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** An SMTP client that sends arbitrary bytes, including those that no library would send. */
export class SmtpClient {
  #socket: Socket
  #text = ''
  #isOver = false

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#hear(socket)
  }

  #hear(socket: Socket): void {
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      this.#text += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#isOver = true
    })
  }

  static async open(port: number): Promise<SmtpClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const client = new SmtpClient(socket)
    await client.reply()
    return client
  }

  static async openTls(port: number): Promise<SmtpClient> {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const client = new SmtpClient(socket)
    await client.reply()
    return client
  }

  /** Call after the 220 reply to STARTTLS. */
  async startTls(): Promise<void> {
    this.#socket.removeAllListeners('data')
    const socket = connectTls({ socket: this.#socket, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    this.#socket = socket
    this.#hear(socket)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** The next complete reply, or undefined if the connection closes first. */
  async reply(): Promise<string | undefined> {
    for (;;) {
      const [whole] = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(this.#text) ?? []
      if (whole !== undefined) {
        this.#text = this.#text.slice(whole.length)
        return whole.trim()
      }
      if (this.#isOver) return undefined
      const waiting = new AbortController()
      const happens = (event: string) => once(this.#socket, event, waiting)
      await Promise.race([happens('data'), happens('close')])
      waiting.abort()
    }
  }

  /** Sends a command and returns the reply. */
  async say(line: string): Promise<string | undefined> {
    this.write(`${line}\r\n`)
    return this.reply()
  }

  /** Sends the commands up to DATA and its 354 reply. */
  async begin(recipient: string): Promise<void> {
    for (const line of ['EHLO client.example', 'MAIL FROM:<>', `RCPT TO:<${recipient}>`, 'DATA']) {
      const reply = await this.say(line)
      if (!/^[23]/.test(reply ?? '')) throw new Error(`${line}: ${reply}`)
    }
  }

  close(): void {
    this.#socket.destroy()
  }
}
