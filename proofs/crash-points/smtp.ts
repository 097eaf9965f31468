import type { Reader, Watcher } from './tapped-proxy.ts'

/** SMTP (RFC 5321): each command and its reply, the first bytes of a message, and the final dot. */
const endOfData = Buffer.from('\r\n.\r\n')
const nothing = Buffer.alloc(0)

export function readSmtp(watch: Watcher, onRecipient: (address: string) => void = () => {}): Reader {
  return new SmtpReader(watch, onRecipient)
}

class SmtpReader implements Reader {
  readonly #watch: Watcher
  readonly #onRecipient: (address: string) => void
  #rest: Buffer = nothing
  #replies: Buffer = nothing
  #isOver = false
  #isMail = false
  /** The commands that await a reply; initially the greeting. */
  #asked: string[] = ['greeting']

  constructor(watch: Watcher, onRecipient: (address: string) => void) {
    this.#watch = watch
    this.#onRecipient = onRecipient
  }

  there(chunk: Buffer): Buffer {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const passed: Buffer[] = []
    for (let next = this.#next(); next.length > 0 && !this.#isOver; next = this.#next()) passed.push(next)
    return Buffer.concat(passed)
  }

  #next(): Buffer {
    if (this.#isOver) return nothing
    return this.#isMail ? this.#nextOfMail() : this.#nextCommand()
  }

  #nextCommand(): Buffer {
    const end = this.#rest.indexOf('\r\n')
    if (end < 0) return nothing
    const line = this.#rest.toString('latin1', 0, end)
    const verb = line.split(/[ :]/)[0]?.toUpperCase() ?? ''
    if (!this.#says(verb)) return nothing
    if (verb === 'RCPT') this.#onRecipient(/<([^>]*)>/.exec(line)?.[1] ?? '')
    this.#asked.push(verb)
    return this.#take(end + 2)
  }

  /** Everything except a possible beginning of the final dot. */
  #nextOfMail(): Buffer {
    const end = this.#rest.indexOf(endOfData)
    if (end < 0) return this.#take(Math.max(0, this.#rest.length - endOfData.length + 1))
    if (end > 0) return this.#take(end)
    if (!this.#says('end of data')) return nothing
    this.#asked.push('end of data')
    this.#isMail = false
    return this.#take(endOfData.length)
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }

  /** Returns false if the command must not arrive. */
  #says(what: string): boolean {
    // QUIT is sent some time later, when the connection is idle.
    if (what !== 'QUIT') this.#isOver ||= this.#watch({ what: `SMTP ${what}`, when: 'before' })
    return !this.#isOver
  }

  /** Commands can be pipelined (RFC 2920), so several replies can arrive together. */
  back(chunk: Buffer): Buffer {
    this.#replies = Buffer.concat([this.#replies, chunk])
    let end = 0
    for (;;) {
      const length = replyLength(this.#replies.subarray(end))
      if (length === 0 || !this.#answers(this.#replies.toString('latin1', end, end + 3))) break
      end += length
    }
    const passed = this.#replies.subarray(0, end)
    this.#replies = this.#replies.subarray(end)
    return passed
  }

  /** Returns false if the reply must not arrive. */
  #answers(code: string): boolean {
    const what = this.#asked.shift()
    if (what !== undefined && what !== 'QUIT') {
      this.#isOver ||= this.#watch({ what: `SMTP ${what}`, when: 'after' })
    }
    if (what === 'DATA' && code === '354') this.#isMail = true
    return !this.#isOver
  }
}

/** The length of the first complete reply; 0 if there is none. `250-` continues it, `250 ` ends it. */
const replyLength = (bytes: Buffer): number =>
  /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(bytes.toString('latin1'))?.[0].length ?? 0
