import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { domainToASCII } from 'node:url'
import type { SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { type FeedbackDeps, takeReport } from '../core/feedback/report.ts'
import { mailOf } from '../core/feedback/return-path.ts'
import { PosternError } from '../platform/errors.ts'
import { createRateLimit, networkOf } from '../platform/http/rate-limit.ts'
import { StrictSmtpServer } from './strict-smtp.ts'

/**
 * The MX of the return-path host: bounces and delivery reports at the return paths of mail, complaints at `fbl` and
 * `abuse`. It relays nothing, delivers nothing and answers to nobody: what it takes in becomes rows, or nothing.
 *
 * 250 is said when the transaction has committed, so that whatever goes wrong before, whoever brought the report still
 * has it, and comes again.
 */
export interface BounceDeps extends FeedbackDeps {
  returnPathHost: string
  host: string
  port: number
  /** PEM; STARTTLS is offered with them. */
  tls: { cert: Buffer; key: Buffer } | undefined
}

export interface Listener {
  port: number
  /** Nobody new is let in; who is in the middle of a mail may finish it. */
  stop(graceMs: number): Promise<void>
}

const maxBytes = 1024 * 1024
const maxClients = 500
// Postfix opens 20 to one place (default_destination_concurrency_limit), and there may be a few behind one address.
const maxClientsPerNetwork = 50
const idleMs = 60_000
// Far above what a mistake makes; whoever guesses return paths is stopped.
const refusalsPerMinute = 100
const stopPauseMs = 20

/** What is said to a client, with its code. */
class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number, text: string) {
    super(text)
    this.responseCode = responseCode
  }
}

export async function startBounces(deps: BounceDeps): Promise<Listener> {
  const door = new Door(deps)
  const server = new StrictSmtpServer({
    name: deps.returnPathHost,
    disabledCommands: deps.tls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    ...deps.tls,
    size: maxBytes,
    rejectOversized: true,
    // A report is about one mail. Whoever has two of them brings them one by one.
    maxRecipients: 1,
    maxClients,
    socketTimeout: idleMs,
    disableReverseLookup: true,
    onConnect: ({ remoteAddress }, callback) => callback(door.enter(remoteAddress)),
    onClose: ({ remoteAddress }) => door.leave(remoteAddress),
    onRcptTo: ({ address }, { remoteAddress }, callback) =>
      void door.expects(address, remoteAddress).then(callback),
    onData: (stream, session, callback) =>
      void door.take(stream, session).then(
        () => callback(null, '2.0.0 Noted'),
        (error) => callback(error),
      ),
  })
  // Of one connection, which is over: somebody hung up, or spoke no TLS.
  server.on('error', (error) => deps.log.debug({ err: error }, 'a connection failed'))
  const listening = server.listen(deps.port, deps.host)
  await once(listening, 'listening')
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('it listens at no port')
  return { port: address.port, stop: (graceMs) => stop(server, graceMs) }
}

class Door {
  readonly #deps: BounceDeps
  readonly #inside = new Map<string, number>()
  readonly #refused = createRateLimit(refusalsPerMinute, 'this address')

  constructor(deps: BounceDeps) {
    this.#deps = deps
  }

  enter(remoteAddress: string): Refusal | null {
    const network = networkOf(remoteAddress)
    const inside = (this.#inside.get(network) ?? 0) + 1
    this.#inside.set(network, inside)
    return inside > maxClientsPerNetwork ? new Refusal(421, '4.7.0 Too many connections') : null
  }

  leave(remoteAddress: string): void {
    const network = networkOf(remoteAddress)
    const inside = (this.#inside.get(network) ?? 1) - 1
    if (inside > 0) this.#inside.set(network, inside)
    else this.#inside.delete(network)
  }

  /** Null for an address that something may be said to. */
  async expects(address: string, remoteAddress: string): Promise<Refusal | null> {
    if (mailOf(this.#deps.keys, address) || this.#isForComplaints(address)) return null
    try {
      await this.#refused(networkOf(remoteAddress))
    } catch {
      return new Refusal(421, '4.7.0 Too many addresses that do not exist')
    }
    return new Refusal(550, '5.1.1 There is no such address here')
  }

  #isForComplaints(address: string): boolean {
    const [, local = '', domain = ''] = /^(fbl|abuse)@(.+)$/i.exec(address) ?? []
    return local !== '' && domainToASCII(domain) === this.#deps.returnPathHost
  }

  async take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const { log, keys } = this.#deps
    const raw = await read(stream)
    // It is refused for its size, whatever is said here.
    if (!raw) return
    const address = session.envelope.rcptTo[0]?.address ?? ''
    try {
      await takeReport(this.#deps, raw, mailOf(keys, address))
    } catch (error) {
      const isAway = error instanceof PosternError && error.code === 'unavailable'
      if (isAway) log.warn({ err: error }, 'a report could not be written down; it will come again')
      else log.error({ err: error }, 'a report could not be applied; it will come again')
      throw new Refusal(451, '4.3.0 Not now; come again')
    }
  }
}

/** Undefined when it is too large. Throws when the client is gone before the end. */
async function read(stream: SMTPServerDataStream): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) if (!stream.sizeExceeded) chunks.push(chunk)
  return stream.sizeExceeded ? undefined : Buffer.concat(chunks)
}

/** `server.close` alone would wait for everybody to leave by themselves, for half a minute. */
async function stop(server: StrictSmtpServer, graceMs: number): Promise<void> {
  const sockets = [...server.connections].map(({ _socket }) => _socket)
  const closed = new Promise<void>((resolve) => server.close(resolve))
  const end = Date.now() + graceMs
  while (sockets.some(({ destroyed }) => !destroyed) && Date.now() < end) {
    for (const connection of server.connections) {
      if (!connection._dataStream) connection.send(421, '4.3.2 Closing')
    }
    await sleep(stopPauseMs)
  }
  for (const socket of sockets) socket.destroy()
  await closed
}
