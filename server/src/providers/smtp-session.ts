import { isAscii as isSevenBit } from 'node:buffer'
import { isIPv4 } from 'node:net'
import { Readable } from 'node:stream'
import type { NodemailerError } from 'nodemailer'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { replyText } from '../formats/enhanced-status.ts'
import type { Mail } from './transport.ts'

/** Where an MTA listens. */
export interface SmtpAddress {
  host: string
  port: number
  /** TLS from the first octet, with a certificate that holds. */
  isTls: boolean
  login: { user: string; pass: string } | null
}

export interface SmtpTimeouts {
  /** To the end of the greetings: name, TCP, TLS, EHLO, AUTH. */
  openMs: number
  /** Without an octet from the other side. */
  silenceMs: number
  /** One mail and all that it takes, other hosts included. */
  mailMs: number
  /** That a session waits for its next mail. */
  idleMs: number
}

/** How a mail went. `isStale`: nothing had been said about it yet in a session that was not new. */
export type SmtpReply =
  | { kind: 'sent'; reply: string }
  | { kind: 'refused'; code: number; reply: string }
  | { kind: 'lost'; detail: string; mayBeSent: boolean; isStale: boolean }

type Lost = Extract<SmtpReply, { kind: 'lost' }>

const notifyOfFailure = ['FAILURE', 'DELAY'] as const

/** One connection to an MTA, for one mail after the other. */
export class SmtpSession {
  readonly #connection: SMTPConnection
  /** What EHLO was answered with, after STARTTLS if there was one: a keyword, and what stands behind it. */
  offers: ReadonlyMap<string, string> = new Map()
  isEncrypted = false
  #demandsUtf8 = false
  #mails = 0
  #onEnd: (() => void) | undefined
  isOver = false

  private constructor(connection: SMTPConnection) {
    this.#connection = connection
    // A socket's errors come here when no mail is under way, too.
    connection.on('error', () => this.#end())
    connection.on('end', () => this.#end())
    markUtf8(connection, () => this.#demandsUtf8)
  }

  get mails(): number {
    return this.#mails
  }

  /** Rejects with an Error whose message tells an operator what is wrong. */
  static async open(
    address: SmtpAddress,
    name: string,
    { openMs, silenceMs }: SmtpTimeouts,
  ): Promise<SmtpSession> {
    const connection = new SMTPConnection({
      host: address.host,
      port: address.port,
      name,
      secure: address.isTls,
      ...startTls(address),
      connectionTimeout: openMs,
      greetingTimeout: openMs,
      socketTimeout: silenceMs,
      dnsTimeout: openMs,
      maxResponseSize: 64 * 1024,
      logger: false,
    })
    const session = new SmtpSession(connection)
    // The library's own limits are met by a peer that says one octet a second.
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), openMs)
    try {
      await Promise.race([session.#greet(address), aborted(limit.signal, `no greeting within ${openMs} ms`)])
      return session
    } catch (error) {
      session.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async #greet({ login }: SmtpAddress): Promise<void> {
    const connection = this.#connection
    await new Promise<void>((resolve, reject) => {
      connection.once('error', reject)
      connection.once('end', () => reject(new Error('the connection was closed')))
      connection.connect((error) => (error ? reject(error) : resolve()))
    })
    this.offers = offersOf(String(connection.lastServerResponse))
    this.isEncrypted = connection.secure
    if (login === null) return
    if (!connection.allowsAuth) throw new Error('a password is configured, and the host offers no AUTH')
    await new Promise<void>((resolve, reject) => {
      connection.login({ credentials: login }, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Never rejects. After a refusal the session goes on, where it can. */
  async send(mail: Mail, withinMs: number): Promise<SmtpReply> {
    const isFresh = this.#mails++ === 0
    if (needsUtf8(mail) && !this.offers.has('SMTPUTF8')) {
      return {
        kind: 'refused',
        code: 553,
        reply: '553 5.6.7 the host does not take addresses outside of ASCII',
      }
    }
    // RFC 6152 §3: it would have to be encoded anew, and the signature would not hold any more.
    if (!isSevenBit(mail.raw) && !this.offers.has('8BITMIME')) {
      return { kind: 'refused', code: 554, reply: '554 5.6.3 the host does not take mail of 8 bits' }
    }
    this.#demandsUtf8 = needsUtf8(mail)
    const body = bodyOf(mail.raw)
    const told = await new Promise<SmtpReply>((resolve) => {
      const lost = (detail: string, mayBeSent: boolean): Lost => ({
        ...{ kind: 'lost', detail, mayBeSent },
        isStale: !isFresh && !mayBeSent,
      })
      const timer = setTimeout(() => {
        resolve({ ...lost(`no end within ${withinMs} ms`, body.readableDidRead), isStale: false })
        this.destroy()
      }, withinMs)
      this.#connection.send(envelopeOf(mail), body, (error, info) => {
        clearTimeout(timer)
        resolve(
          error ? toldBy(error, body.readableDidRead, lost) : { kind: 'sent', reply: info?.response ?? '' },
        )
      })
    })
    if (told.kind === 'lost') this.destroy()
    if (told.kind === 'refused') await this.#recover(body.readableDidRead, withinMs)
    return told
  }

  /** The reply to one command, for whoever looks at a host and sends nothing. Rejects when there is none. */
  ask(command: string, withinMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer within ${withinMs} ms`)), withinMs)
      this.#onEnd = () => reject(new Error('the connection was closed'))
      actionsOf(this.#connection).push((reply) => {
        clearTimeout(timer)
        this.#onEnd = undefined
        resolve(replyText(reply))
      })
      sayTo(this.#connection, command)
    })
  }

  /** A peer that refuses a mail before it is through may still be reading: that session is not used again. */
  async #recover(wasUnderWay: boolean, withinMs: number): Promise<void> {
    if (wasUnderWay || this.isOver) return this.close()
    const isReset = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs)
      this.#onEnd = () => resolve(false)
      this.#connection.reset((error) => {
        clearTimeout(timer)
        resolve(!error)
      })
    })
    this.#onEnd = undefined
    if (!isReset) this.destroy()
  }

  /** Takes leave. */
  close(): void {
    if (!this.isOver) this.#connection.quit()
    this.#end()
    // Whoever does not answer to that is left.
    setTimeout(() => this.destroy(), 2000).unref()
  }

  destroy(): void {
    this.#end()
    const socket = this.#connection._socket
    if (socket) socket.destroy()
    this.#connection.close()
  }

  #end(): void {
    this.isOver = true
    this.#onEnd?.()
  }
}

/**
 * STARTTLS wherever it is offered. Without a login it keeps out whoever only listens, so any certificate will do, as
 * between MTAs (RFC 7435); a password is only sent to a host that has proved its name, or inside this machine.
 */
function startTls({ host, isTls, login }: SmtpAddress) {
  if (isTls) return {}
  const isHere = host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  if (login === null || isHere) return { opportunisticTLS: true, tls: { rejectUnauthorized: false } }
  return { requireTLS: true }
}

const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

const needsUtf8 = (mail: Mail): boolean =>
  mail.needsUtf8 || !isAscii(mail.envelope.to) || !isAscii(mail.envelope.from)

function envelopeOf(mail: Mail) {
  const { from, to } = mail.envelope
  const notify = [...(mail.dsn.isSuccessTold === false ? [] : ['SUCCESS' as const]), ...notifyOfFailure]
  return {
    from: from === '' ? (false as const) : from,
    to: [to],
    size: mail.raw.length,
    use8BitMime: needsUtf8(mail) || !isSevenBit(mail.raw),
    dsn: { ret: 'HDRS', envid: mail.dsn.envid, notify, orcpt: originalRecipient(to) },
  }
}

/** RFC 3461 §4.2; RFC 6533 §3 for what is not ASCII: `\x{…}`, so that it passes where only ASCII does. */
function originalRecipient(to: string): string {
  if (isAscii(to)) return `rfc822;${to}`
  const written = to.replace(
    /[\\+=]|[^\x21-\x7e]/gu,
    (sign) => `\\x{${sign.codePointAt(0)?.toString(16).toUpperCase()}}`,
  )
  return `utf-8;${written}`
}

/** `readableDidRead` tells whether the other side has asked for the mail itself, and perhaps has all of it. */
const bodyOf = (raw: Buffer): Readable =>
  new Readable({
    read() {
      this.push(raw)
      this.push(null)
    },
  })

function toldBy(
  error: NodemailerError,
  wasUnderWay: boolean,
  lost: (detail: string, mayBeSent: boolean) => Lost,
): SmtpReply {
  const { code, responseCode = 0, response = '' } = error
  // RFC 5321 §3.8: 421 says that the host takes leave, and refuses the mail besides.
  if (responseCode === 421) return lost(replyText(response), false)
  if (responseCode >= 400 && (code === 'EENVELOPE' || code === 'EMESSAGE')) {
    return { kind: 'refused', code: responseCode, reply: replyText(response) }
  }
  if (code === 'EENVELOPE' || code === 'EMESSAGE') {
    // Refused on this side: larger than the host has said it takes.
    return { kind: 'refused', code: 552, reply: `552 5.3.4 ${replyText(error.message)}` }
  }
  return lost(replyText(error.message), wasUnderWay && responseCode < 400)
}

/** RFC 5321 §4.1.1.1: one on each line behind the first. */
const offersOf = (reply: string): Map<string, string> =>
  new Map(
    reply
      .split(/\r?\n/)
      .slice(1)
      .map((line) => /^250[ -](\S+) *(.*)$/.exec(line))
      .flatMap((match) => (match ? [[(match[1] ?? '').toUpperCase(), (match[2] ?? '').trim()]] : [])),
  )

/** The library has no method for a command by itself: it writes one, and calls the first of these with the reply. */
const actionsOf = (connection: SMTPConnection) =>
  Reflect.get(connection, '_responseActions') as ((reply: string) => void)[]

const sayTo = (connection: SMTPConnection, command: string): void =>
  (Reflect.get(connection, '_sendCommand') as (line: string) => void).call(connection, command)

/**
 * The library asks for SMTPUTF8 only when the envelope needs it, and has no option for a header that does. It writes
 * every command through this one method.
 */
function markUtf8(connection: SMTPConnection, isDemanded: () => boolean): void {
  const write = Reflect.get(connection, '_sendCommand') as (line: string, logged?: string) => void
  Reflect.set(connection, '_sendCommand', (line: string, logged?: string) => {
    const isUnmarked = line.startsWith('MAIL FROM:') && !/ SMTPUTF8\b/.test(line)
    write.call(connection, isUnmarked && isDemanded() ? `${line} SMTPUTF8` : line, logged)
  })
}

async function aborted(signal: AbortSignal, why: string): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error(why))))
}
