import { isAscii as isSevenBit } from 'node:buffer'
import { isIPv4 } from 'node:net'
import { Readable } from 'node:stream'
import type { NodemailerError } from 'nodemailer'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { replyText } from '../formats/enhanced-status.ts'
import type { Mail } from './transport.ts'

/** The address of an MTA. */
export interface SmtpAddress {
  host: string
  port: number
  /** Implicit TLS, with a valid certificate. */
  isTls: boolean
  login: { user: string; pass: string } | null
}

export interface SmtpTimeouts {
  /** The maximum time until the session is ready: DNS, TCP, TLS, EHLO, AUTH. */
  openMs: number
  /** The maximum time without receiving an octet from the host. */
  silenceMs: number
  /** The maximum total time for one message, including attempts at other hosts. */
  mailMs: number
  /** How long an idle session is kept open for the next message. */
  idleMs: number
}

/** The result for one message. `isStale`: a reused session was lost before any reply about this message. */
export type SmtpReply =
  | { kind: 'sent'; reply: string }
  | { kind: 'refused'; code: number; reply: string }
  | { kind: 'lost'; detail: string; mayBeSent: boolean; isStale: boolean }

type Lost = Extract<SmtpReply, { kind: 'lost' }>

const notifyOfFailure = ['FAILURE', 'DELAY'] as const

/** One connection to an MTA, for consecutive messages. */
export class SmtpClient {
  readonly #connection: SMTPConnection
  /** The EHLO keywords with their parameters, after STARTTLS if it was used. */
  extensions: ReadonlyMap<string, string> = new Map()
  isEncrypted = false
  #requiresUtf8 = false
  #mails = 0
  #onEnd: (() => void) | undefined
  isOver = false

  private constructor(connection: SMTPConnection) {
    this.#connection = connection
    // Socket errors are emitted here even when no message is being sent.
    connection.on('error', () => this.#end())
    connection.on('end', () => this.#end())
    markUtf8(connection, () => this.#requiresUtf8)
  }

  get mails(): number {
    return this.#mails
  }

  /** Rejects with an Error whose message is for operators. */
  static async open(
    address: SmtpAddress,
    name: string,
    { openMs, silenceMs }: SmtpTimeouts,
  ): Promise<SmtpClient> {
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
    const session = new SmtpClient(connection)
    // A peer that sends one octet per second never triggers the library's timeouts.
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
    this.extensions = extensionsOf(String(connection.lastServerResponse))
    this.isEncrypted = connection.secure
    if (login === null) return
    if (!connection.allowsAuth) throw new Error('a password is configured, but the host does not offer AUTH')
    await new Promise<void>((resolve, reject) => {
      connection.login({ credentials: login }, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Never rejects. After a rejection the session stays open if possible. */
  async send(mail: Mail, withinMs: number): Promise<SmtpReply> {
    const isFresh = this.#mails++ === 0
    if (needsUtf8(mail) && !this.extensions.has('SMTPUTF8')) {
      return {
        kind: 'refused',
        code: 553,
        reply: '553 5.6.7 SMTPUTF8 is required, but the host does not offer it',
      }
    }
    // RFC 6152 §3: the message would have to be re-encoded, which would break the signature.
    if (!isSevenBit(mail.raw) && !this.extensions.has('8BITMIME')) {
      return {
        kind: 'refused',
        code: 554,
        reply: '554 5.6.3 8BITMIME is required, but the host does not offer it',
      }
    }
    this.#requiresUtf8 = needsUtf8(mail)
    const body = bodyOf(mail.raw)
    const result = await new Promise<SmtpReply>((resolve) => {
      const lost = (detail: string, mayBeSent: boolean): Lost => ({
        ...{ kind: 'lost', detail, mayBeSent },
        isStale: !isFresh && !mayBeSent,
      })
      const timer = setTimeout(() => {
        resolve({ ...lost(`no reply within ${withinMs} ms`, body.readableDidRead), isStale: false })
        this.destroy()
      }, withinMs)
      this.#connection.send(envelopeOf(mail), body, (error, info) => {
        clearTimeout(timer)
        resolve(
          error ? resultOf(error, body.readableDidRead, lost) : { kind: 'sent', reply: info?.response ?? '' },
        )
      })
    })
    if (result.kind === 'lost') this.destroy()
    if (result.kind === 'refused') await this.#recover(body.readableDidRead, withinMs)
    return result
  }

  /**
   * Sends one command and returns the reply, for checks that do not send mail. Rejects if there is no reply.
   */
  command(line: string, withinMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no reply within ${withinMs} ms`)), withinMs)
      this.#onEnd = () => reject(new Error('the connection was closed'))
      actionsOf(this.#connection).push((reply) => {
        clearTimeout(timer)
        this.#onEnd = undefined
        resolve(replyText(reply))
      })
      writeCommand(this.#connection, line)
    })
  }

  /**
   * A host that rejects a message during the transfer may still be reading, so that session is not reused.
   */
  async #recover(wasInTransfer: boolean, withinMs: number): Promise<void> {
    if (wasInTransfer || this.isOver) return this.close()
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

  /** Sends QUIT. */
  close(): void {
    if (!this.isOver) this.#connection.quit()
    this.#end()
    // Without a reply to QUIT, the connection is dropped.
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
 * Uses STARTTLS if it is offered. Without a login, TLS protects only against passive eavesdropping, so any
 * certificate is accepted, as between MTAs (RFC 7435). A password is sent only to a host with a valid
 * certificate, or over loopback.
 */
function startTls({ host, isTls, login }: SmtpAddress) {
  if (isTls) return {}
  const isLoopback = host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  if (login === null || isLoopback) return { opportunisticTLS: true, tls: { rejectUnauthorized: false } }
  return { requireTLS: true }
}

const isAscii = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

const needsUtf8 = (mail: Mail): boolean =>
  mail.needsUtf8 || !isAscii(mail.envelope.to) || !isAscii(mail.envelope.from)

function envelopeOf(mail: Mail) {
  const { from, to } = mail.envelope
  const notify = [...(mail.dsn.notifySuccess === false ? [] : ['SUCCESS' as const]), ...notifyOfFailure]
  return {
    from: from === '' ? (false as const) : from,
    to: [to],
    size: mail.raw.length,
    use8BitMime: needsUtf8(mail) || !isSevenBit(mail.raw),
    dsn: { ret: 'HDRS', envid: mail.dsn.envid, notify, orcpt: originalRecipient(to) },
  }
}

/**
 * RFC 3461 §4.2. RFC 6533 §3 encodes non-ASCII addresses as `\x{…}`, which is valid where only ASCII is
 * allowed.
 */
function originalRecipient(to: string): string {
  if (isAscii(to)) return `rfc822;${to}`
  const encoded = to.replace(
    /[\\+=]|[^\x21-\x7e]/gu,
    (char) => `\\x{${char.codePointAt(0)?.toString(16).toUpperCase()}}`,
  )
  return `utf-8;${encoded}`
}

/** If `readableDidRead` is true, the host has accepted DATA and may have the complete message. */
const bodyOf = (raw: Buffer): Readable =>
  new Readable({
    read() {
      this.push(raw)
      this.push(null)
    },
  })

function resultOf(
  error: NodemailerError,
  wasInTransfer: boolean,
  lost: (detail: string, mayBeSent: boolean) => Lost,
): SmtpReply {
  const { code, responseCode = 0, response = '' } = error
  // RFC 5321 §3.8: with 421 the host closes the session and does not accept the message.
  if (responseCode === 421) return lost(replyText(response), false)
  if (responseCode >= 400 && (code === 'EENVELOPE' || code === 'EMESSAGE')) {
    return { kind: 'refused', code: responseCode, reply: replyText(response) }
  }
  if (code === 'EENVELOPE' || code === 'EMESSAGE') {
    // Rejected locally: the message is larger than the SIZE that the host announced.
    return { kind: 'refused', code: 552, reply: `552 5.3.4 ${replyText(error.message)}` }
  }
  return lost(replyText(error.message), wasInTransfer && responseCode < 400)
}

/** RFC 5321 §4.1.1.1: one keyword on each line after the first. */
const extensionsOf = (reply: string): Map<string, string> =>
  new Map(
    reply
      .split(/\r?\n/)
      .slice(1)
      .map((line) => /^250[ -](\S+) *(.*)$/.exec(line))
      .flatMap((match) => (match ? [[(match[1] ?? '').toUpperCase(), (match[2] ?? '').trim()]] : [])),
  )

/**
 * The library has no method for sending a single command: this writes the command, and the library calls the
 * first of these actions with the reply.
 */
const actionsOf = (connection: SMTPConnection) =>
  Reflect.get(connection, '_responseActions') as ((reply: string) => void)[]

const writeCommand = (connection: SMTPConnection, line: string): void =>
  (Reflect.get(connection, '_sendCommand') as (line: string) => void).call(connection, line)

/**
 * The library sets SMTPUTF8 only if the envelope requires it, and has no option for a header that requires
 * it. The library writes every command through this one method.
 */
function markUtf8(connection: SMTPConnection, isRequired: () => boolean): void {
  const write = Reflect.get(connection, '_sendCommand') as (line: string, logged?: string) => void
  Reflect.set(connection, '_sendCommand', (line: string, logged?: string) => {
    const isUnmarked = line.startsWith('MAIL FROM:') && !/ SMTPUTF8\b/.test(line)
    write.call(connection, isUnmarked && isRequired() ? `${line} SMTPUTF8` : line, logged)
  })
}

async function aborted(signal: AbortSignal, why: string): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error(why))))
}
