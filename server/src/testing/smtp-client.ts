import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Speaks SMTP byte by byte, so that a test can say what no library would. */
export class SmtpClient {
  readonly #socket: Socket
  #text = ''
  #isOver = false

  private constructor(socket: Socket) {
    this.#socket = socket
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

  get isOver(): boolean {
    return this.#isOver
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** The next whole reply, or undefined when the connection ends before there is one. */
  async reply(): Promise<string | undefined> {
    for (;;) {
      const [whole] = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(this.#text) ?? []
      if (whole !== undefined) {
        this.#text = this.#text.slice(whole.length)
        return whole.trim()
      }
      if (this.#isOver) return undefined
      await Promise.race([once(this.#socket, 'data'), once(this.#socket, 'close')])
    }
  }

  /** A command, and the reply to it. */
  async say(line: string): Promise<string | undefined> {
    this.write(`${line}\r\n`)
    return this.reply()
  }

  /** Up to the 354 that asks for the mail. */
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
