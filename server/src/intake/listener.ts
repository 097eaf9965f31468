import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { networkOf } from '../platform/http/rate-limit.ts'
import type { Logger } from '../platform/log.ts'
import type { Certificate } from './certificate.ts'
import { Refusal } from './replies.ts'
import type { StrictSmtpServer } from './strict-smtp.ts'

/** What every listener of the intake has: a port, who is inside, what is held in memory, and an orderly end. */
export interface Listener {
  port: number
  /** From now on, for whoever connects. */
  renew(certificate: Certificate): void
  /** Nobody new is let in; who is in the middle of a mail may finish it. */
  stop(graceMs: number): Promise<void>
}

const stopPauseMs = 20

export async function listen(
  server: StrictSmtpServer,
  { host, port, log }: { host: string; port: number; log: Logger },
): Promise<Listener> {
  // Of one connection, which is over: somebody hung up, or spoke no TLS.
  server.on('error', (error) => log.debug({ err: error }, 'a connection failed'))
  const listening = server.listen(port, host)
  await once(listening, 'listening')
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('it listens at no port')
  return {
    port: address.port,
    renew: (certificate) => server.updateSecureContext({ ...certificate }),
    stop: (graceMs) => stop(server, graceMs),
  }
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

/** Who is inside, by network: one that has many machines, or many connections, leaves room for others. */
export class Crowd {
  readonly #mostPerNetwork: number
  readonly #inside = new Map<string, Set<string>>()

  constructor(mostPerNetwork: number) {
    this.#mostPerNetwork = mostPerNetwork
  }

  enter({ id, remoteAddress }: SMTPServerSession): Refusal | null {
    const network = networkOf(remoteAddress)
    const inside = this.#inside.get(network) ?? new Set()
    this.#inside.set(network, inside.add(id))
    return inside.size > this.#mostPerNetwork ? new Refusal(421, '4.7.0 Too many connections') : null
  }

  /** Also told of whoever was shown out before they entered. */
  leave({ id, remoteAddress }: SMTPServerSession): void {
    const network = networkOf(remoteAddress)
    const inside = this.#inside.get(network)
    inside?.delete(id)
    if (inside?.size === 0) this.#inside.delete(network)
  }
}

/** The octets of mails that all sessions together hold in memory. */
export class Budget {
  #free: number

  constructor(octets: number) {
    this.#free = octets
  }

  has(octets: number): boolean {
    return octets <= this.#free
  }

  take(octets: number): boolean {
    if (!this.has(octets)) return false
    this.#free -= octets
    return true
  }

  giveBack(octets: number): void {
    this.#free += octets
  }
}

const blockBytes = 64 * 1024

/** A client chooses how small its pieces are: kept one by one, they would take up far more than they hold. */
class Gathered {
  #blocks: Buffer[] = []
  #length = 0

  add(piece: Buffer): void {
    for (let at = 0; at < piece.length; ) {
      const from = this.#length % blockBytes
      if (from === 0) this.#blocks.push(Buffer.allocUnsafeSlow(blockBytes))
      const copied = piece.copy(this.#blocks.at(-1) as Buffer, from, at)
      this.#length += copied
      at += copied
    }
  }

  /** What there is, which is then forgotten. */
  take(): Buffer {
    const all = Buffer.concat(this.#blocks, this.#length)
    this.drop()
    return all
  }

  drop(): void {
    this.#blocks = []
    this.#length = 0
  }
}

/**
 * A mail to its end, and what is done with it, in as much memory as there is for it. Undefined when it is too large:
 * smtp-server refuses it then, whatever is said here. Throws when the client is gone before the end.
 */
export async function withMail<T>(
  stream: SMTPServerDataStream,
  budget: Budget,
  use: (raw: Buffer) => Promise<T>,
): Promise<T | undefined> {
  const gathered = new Gathered()
  let held = 0
  let isOver = false
  const drop = () => {
    gathered.drop()
    budget.giveBack(held)
    held = 0
  }
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (!isOver && budget.take(chunk.length)) {
        held += chunk.length
        gathered.add(chunk)
      } else if (!isOver) {
        isOver = true
        drop()
      }
      if (stream.sizeExceeded) drop()
    }
    if (stream.sizeExceeded) return undefined
    if (isOver) throw new Refusal(452, '4.3.1 Too much mail at once; come again')
    return await use(gathered.take())
  } finally {
    drop()
  }
}
