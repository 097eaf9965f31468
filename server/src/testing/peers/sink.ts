import {
  SMTPServer,
  type SMTPServerDataStream,
  type SMTPServerError,
  type SMTPServerSession,
} from 'smtp-server'
import { cleanUp } from '../harness/cleanup.ts'
import { patienceMs } from '../harness/waiting.ts'

export interface Delivery {
  /** Envelope sender. */
  from: string
  to: string[]
  /** The bytes received, without dot-stuffing. */
  raw: Buffer
  /** The client's address. */
  ip: string
  helo: string
}

export interface Refusal {
  to: string
  answer: string
}

/** Applied at RCPT or after the whole message. `answer` is a reply such as `550 5.1.1 No such user`. */
export interface Treatment {
  at: 'rcpt' | 'data'
  answer: string | 'hang' | 'close'
  /** Default: always. */
  times?: number
}

type Matches = (delivery: Delivery) => boolean

interface Waiting {
  matches: Matches
  resolve(delivery: Delivery): void
}

/**
 * A receiving MTA. It accepts mail for any recipient and stores every delivery unchanged, or treats a recipient as
 * the test requests. A second sink can receive bounces and other reports.
 */
export class Sink {
  /** Accepted deliveries, in order. */
  readonly received: Delivery[] = []
  /** Rejected recipients, in order. */
  readonly refused: Refusal[] = []
  readonly #server: SMTPServer
  readonly #treatments = new Map<string, { treatment: Treatment; left: number }>()
  readonly #notReturned: Delivery[] = []
  readonly #waiting = new Set<Waiting>()

  private constructor() {
    this.#server = new SMTPServer({
      name: 'sink.test',
      disabledCommands: ['AUTH', 'STARTTLS'],
      // Like most MTAs: the relaying MTA then leaves delivery reports to this server, unless configured otherwise.
      hideDSN: false,
      disableReverseLookup: true,
      maxAllowedUnauthenticatedCommands: false,
      closeTimeout: 1,
      onRcptTo: ({ address }, session, callback) =>
        this.#applyTreatment([address], 'rcpt', session, callback),
      onData: (stream, session, callback) => void this.#receive(stream, session, callback),
    })
    // Aborted connections are not test failures.
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

  /** After the treatment has been applied `times` times, the recipient is accepted. */
  treat(recipient: string, treatment: Treatment): void {
    this.#treatments.set(keyOf(recipient), { treatment, left: treatment.times ?? Number.POSITIVE_INFINITY })
  }

  /** Returns the first matching delivery that has not been returned yet, or waits for one. */
  next(matches: Matches, timeoutMs = patienceMs): Promise<Delivery> {
    const index = this.#notReturned.findIndex(matches)
    const [existing] = index < 0 ? [] : this.#notReturned.splice(index, 1)
    if (existing) return Promise.resolve(existing)
    const { promise, resolve, reject } = Promise.withResolvers<Delivery>()
    const waiter = { matches, resolve }
    const late = `no matching delivery within ${timeoutMs} ms among ${this.received.length} deliveries`
    const timer = setTimeout(() => reject(new Error(late)), timeoutMs)
    this.#waiting.add(waiter)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(waiter)
    })
  }

  /** Also closes connections that wait for a reply. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve))
  }

  /** Invokes the callback unless a recipient's treatment applies. */
  #applyTreatment(
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

  async #receive(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    callback: (error?: Error | null, message?: string) => void,
  ): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of stream) chunks.push(chunk)
    } catch {
      // An aborted message is not a delivery; smtp-server has closed the connection.
      return
    }
    const { mailFrom, rcptTo } = session.envelope
    const to = rcptTo.map(({ address }) => address)
    this.#applyTreatment(to, 'data', session, (error) => {
      if (error) return callback(error)
      this.#store({
        from: mailFrom ? mailFrom.address : '',
        to,
        raw: Buffer.concat(chunks),
        ip: session.remoteAddress,
        helo: session.hostNameAppearsAs,
      })
      callback(null, '2.0.0 Kept')
    })
  }

  #store(delivery: Delivery): void {
    this.received.push(delivery)
    const waiter = [...this.#waiting].find(({ matches }) => matches(delivery))
    if (waiter === undefined) this.#notReturned.push(delivery)
    else waiter.resolve(delivery)
    if (waiter) this.#waiting.delete(waiter)
  }

  #disconnect({ id }: SMTPServerSession): void {
    for (const connection of this.#server.connections) if (connection.id === id) connection._socket.destroy()
  }
}

/** Case-insensitive, which is sufficient for recipients in tests. */
const keyOf = (recipient: string): string => recipient.toLowerCase()

function asError(reply: string): SMTPServerError {
  const [, code, text = ''] = /^([45]\d\d) (.+)$/s.exec(reply) ?? []
  if (code === undefined) throw new Error(`"${reply}" is not an error reply`)
  return Object.assign(new Error(text), { responseCode: Number(code) })
}
