import {
  SMTPServer,
  type SMTPServerDataStream,
  type SMTPServerError,
  type SMTPServerSession,
} from 'smtp-server'
import { cleanUp } from '../harness/cleanup.ts'
import { patienceMs } from '../harness/waiting.ts'

export interface Delivery {
  /** The envelope's. */
  from: string
  to: string[]
  /** As it came over the wire, but for the dots of transparency. */
  raw: Buffer
  /** Who brought it. */
  ip: string
  helo: string
}

export interface Refusal {
  to: string
  answer: string
}

/** At RCPT, or once the whole message is there. An answer is a reply such as `550 5.1.1 No such user`. */
export interface Treatment {
  at: 'rcpt' | 'data'
  answer: string | 'hang' | 'close'
  /** For ever, if it does not say. */
  times?: number
}

type Matches = (delivery: Delivery) => boolean

interface Waiting {
  matches: Matches
  resolve(delivery: Delivery): void
}

/**
 * An MTA at the far end: takes mail for anybody and keeps every delivery to the byte, or treats a recipient as a test
 * says. A second one can stand where bounces and other reports come back to.
 */
export class Sink {
  /** What was accepted, in order. */
  readonly received: Delivery[] = []
  /** What was not, in order. */
  readonly refused: Refusal[] = []
  readonly #server: SMTPServer
  readonly #treatments = new Map<string, { treatment: Treatment; left: number }>()
  readonly #notHandedOut: Delivery[] = []
  readonly #waiting = new Set<Waiting>()

  private constructor() {
    this.#server = new SMTPServer({
      name: 'sink.test',
      disabledCommands: ['AUTH', 'STARTTLS'],
      // As most do: whoever hands on a mail then leaves it to us to tell of its delivery, unless told otherwise.
      hideDSN: false,
      disableReverseLookup: true,
      maxAllowedUnauthenticatedCommands: false,
      closeTimeout: 1,
      onRcptTo: ({ address }, session, callback) => this.#meet([address], 'rcpt', session, callback),
      onData: (stream, session, callback) => void this.#take(stream, session, callback),
    })
    // A peer that goes away in the middle of something is no failure of a test.
    this.#server.on('error', () => {})
  }

  static async open(): Promise<Sink> {
    const sink = new Sink()
    await new Promise<void>((resolve) => sink.#server.listen(0, '127.0.0.1', resolve))
    cleanUp(() => sink.close())
    return sink
  }

  get port(): number {
    const address = this.#server.server.address()
    if (address === null || typeof address === 'string') throw new Error('the sink is closed')
    return address.port
  }

  /** Once it was treated so as many times as that says, the recipient is accepted as everybody is. */
  treat(recipient: string, treatment: Treatment): void {
    this.#treatments.set(keyOf(recipient), { treatment, left: treatment.times ?? Number.POSITIVE_INFINITY })
  }

  /** The first delivery that matches and was not handed out before; waited for if need be. */
  next(matches: Matches, timeoutMs = patienceMs): Promise<Delivery> {
    const index = this.#notHandedOut.findIndex(matches)
    const [there] = index < 0 ? [] : this.#notHandedOut.splice(index, 1)
    if (there) return Promise.resolve(there)
    const { promise, resolve, reject } = Promise.withResolvers<Delivery>()
    const place = { matches, resolve }
    const late = `nothing that matches came in ${timeoutMs} ms, of ${this.received.length} deliveries in all`
    const timer = setTimeout(() => reject(new Error(late)), timeoutMs)
    this.#waiting.add(place)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(place)
    })
  }

  /** Whoever hangs is let go. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve))
  }

  /** Calls back unless a recipient is treated otherwise. */
  #meet(
    recipients: string[],
    at: Treatment['at'],
    session: SMTPServerSession,
    callback: (error?: Error) => void,
  ): void {
    for (const to of recipients) {
      const treated = this.#treatments.get(keyOf(to))
      if (treated?.treatment.at !== at || treated.left === 0) continue
      treated.left--
      const { answer } = treated.treatment
      this.refused.push({ to, answer })
      if (answer === 'close') this.#disconnect(session)
      else if (answer !== 'hang') callback(asError(answer))
      return
    }
    callback()
  }

  async #take(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    callback: (error?: Error | null, message?: string) => void,
  ): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of stream) chunks.push(chunk)
    } catch {
      // Whoever breaks off has delivered nothing; smtp-server has closed their connection.
      return
    }
    const { mailFrom, rcptTo } = session.envelope
    const to = rcptTo.map(({ address }) => address)
    this.#meet(to, 'data', session, (error) => {
      if (error) return callback(error)
      this.#keep({
        from: mailFrom ? mailFrom.address : '',
        to,
        raw: Buffer.concat(chunks),
        ip: session.remoteAddress,
        helo: session.hostNameAppearsAs,
      })
      callback(null, '2.0.0 Kept')
    })
  }

  #keep(delivery: Delivery): void {
    this.received.push(delivery)
    const taker = [...this.#waiting].find(({ matches }) => matches(delivery))
    if (taker === undefined) this.#notHandedOut.push(delivery)
    else taker.resolve(delivery)
    if (taker) this.#waiting.delete(taker)
  }

  #disconnect({ id }: SMTPServerSession): void {
    for (const connection of this.#server.connections) if (connection.id === id) connection._socket.destroy()
  }
}

/** Recipients of a test differ by more than the case of a letter. */
const keyOf = (recipient: string): string => recipient.toLowerCase()

function asError(reply: string): SMTPServerError {
  const [, code, text = ''] = /^([45]\d\d) (.+)$/s.exec(reply) ?? []
  if (code === undefined) throw new Error(`"${reply}" is no reply that refuses something`)
  return Object.assign(new Error(text), { responseCode: Number(code) })
}
