import { setTimeout as sleep } from 'node:timers/promises'
import { type Part, type PartName, type Postern, startPostern } from '../../bench/postern.ts'
import { makeSenders, type Sender } from '../../bench/senders.ts'
import { type SmtpSink, startSmtpSink } from '../../bench/smtp-sink.ts'
import { writeCertificate } from '../../server/src/testing/peers/certificate.ts'
import type { OutboundMail } from '../../server/src/testing/peers/ses-outbound.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'
import type { Promised } from '../check.ts'
import { readPostgres } from './postgres.ts'
import { Amazon } from './ses-and-sns.ts'
import { readSmtp } from './smtp.ts'
import { openTap, type Passing, readHttp, type Tap } from './tapped-proxy.ts'
import { readTls } from './tls.ts'

/**
 * Postern in three processes, with a proxy on each of their connections: to PostgreSQL, to the MTA, to SES and SNS, and
 * from clients. At the chosen point the process is killed and restarted.
 */
export interface Point {
  /** The variant's current step. The same traffic can occur in several steps. */
  step: string
  part: PartName
  what: string
  when: Passing['when']
  /** Number of earlier occurrences in this step. */
  occurrence: number
}

export interface Received extends Promised {
  returnPath: string
  header: string
  /** Set if SES accepted the message, not the MTA. */
  ses?: OutboundMail
}

export const describePoint = ({ step, part, what, when, occurrence }: Point): string =>
  `${step}: ${part}, ${when} ${what}${occurrence > 0 ? ` no. ${occurrence + 1}` : ''}`

/** Long enough for a busy machine; a longer wait means that the process is stuck. */
export const patienceMs = 300_000

type Read = Parameters<typeof openTap>[2]

/** Sends through SES, whereas `sender` sends through the MTA. */
const sesDomain = 'ses.example.com'

export class Installation {
  readonly postern: Postern
  readonly sender: Sender
  readonly amazon: Amazon
  readonly sesDomain = sesDomain
  /** Messages that the MTA and SES have accepted. */
  readonly received: Received[] = []
  /** The reply with which the MTA rejects a recipient, if it does. */
  refuses: (recipient: string) => string | undefined = () => undefined
  /** Every point passed since `watch`. */
  readonly passed: Point[] = []
  /** The recipients that were in flight at the crash. */
  inFlight: Promised[] = []
  readonly #environment: Record<string, string>
  readonly #parts: Partial<Record<PartName, Part>> = {}
  readonly #databases: Partial<Record<PartName, Tap>> = {}
  /** The proxies on all other connections. */
  readonly #lines: Record<PartName, Tap[]> = { api: [], worker: [], intake: [] }
  /** Connections on which a session may be kept open and reused. */
  readonly #sessions: Tap[] = []
  readonly #close: (() => unknown)[] = []
  readonly #handedOver = new Set<string>()
  #seen = new Map<string, number>()
  #step: string | undefined
  #point: string | undefined
  #death: Promise<void> | undefined
  #dead: PartName | undefined
  #ports = { api: 0, intake: 0, submission: 0 }

  private constructor(postern: Postern, sender: Sender, amazon: Amazon, environment: Record<string, string>) {
    this.postern = postern
    this.sender = sender
    this.amazon = amazon
    this.#environment = environment
  }

  static async open(environment: Record<string, string> = {}): Promise<Installation> {
    const postern = await startPostern({ environment })
    const [sender] = await makeSenders(postern, 1)
    if (!sender) throw new Error('no sender was created')
    const installation = new Installation(postern, sender, await Amazon.open(), { ...environment })
    await postern.api.stop()
    await installation.#layLines()
    await installation.#openSesDomain()
    return installation
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ports.api}`
  }

  /** The port for reports. */
  get intakePort(): number {
    return this.#ports.intake
  }

  /** The submission port with implicit TLS. */
  get submissionPort(): number {
    return this.#ports.submission
  }

  /** The process that was killed. */
  get dead(): PartName | undefined {
    return this.#dead
  }

  async #layLines(): Promise<void> {
    const sink = await this.#startSink()
    const { ses, sns } = this.amazon
    const [http, smtp, tls] = [await steadyPort(), await steadyPort(), await steadyPort()]
    const readHandOver: Read = (watch) => readSmtp(watch, (recipient) => this.#handedOver.add(recipient))
    const lines = {
      api: await this.#line('api', http, readHttp),
      certificates: await this.#line('api', Number(new URL(sns.url).port), readHttp),
      mta: await this.#line('worker', sink.port, readHandOver),
      ses: await this.#line('worker', Number(new URL(ses.url).port), readHttp),
      intake: await this.#line('intake', smtp, readSmtp),
      submission: await this.#line('intake', tls, readTls),
    }
    this.#sessions.push(lines.mta, lines.intake)
    this.#ports = { api: lines.api.port, intake: lines.intake.port, submission: lines.submission.port }
    const { files } = writeCertificate(this.postern.directory)
    Object.assign(this.#environment, {
      POSTERN_HTTP_PORT: String(http),
      POSTERN_BOUNCE_PORT: String(smtp),
      POSTERN_FEEDBACK_REPORTERS: '127.0.0.1',
      POSTERN_SUBMISSIONS_PORT: String(tls),
      POSTERN_INTAKE_TLS_CERTIFICATE: files.certificate,
      POSTERN_INTAKE_TLS_KEY: files.key,
      POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${lines.mta.port}`,
      ...this.amazon.settings({ ses: lines.ses.port, sns: lines.certificates.port }),
    })
    const databasePort = Number(new URL(this.postern.databaseUrl).port)
    for (const name of ['api', 'worker', 'intake'] as const) {
      this.#databases[name] = await this.#tap(name, databasePort, readPostgres)
      await this.#start(name)
    }
  }

  async #line(part: PartName, port: number, read: Read): Promise<Tap> {
    const opened = await this.#tap(part, port, read)
    this.#lines[part].push(opened)
    return opened
  }

  async #tap(part: PartName, port: number, read: Read): Promise<Tap> {
    const opened = await openTap(port, (passing) => this.#meets(part, passing), read)
    this.#close.push(() => opened.close())
    return opened
  }

  /** The worker registers the domain with SES. As with the other domains, its DNS records are assumed to be correct. */
  async #openSesDomain(): Promise<void> {
    const { ses } = this.amazon
    const response = await fetch(`${this.url}/v1/admin/projects/${this.sender.projectId}/domains`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await this.postern.token()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: sesDomain, mta_provider: 'ses', reason: 'To be measured' }),
    })
    if (response.status !== 201) throw new Error(`${sesDomain}: ${response.status} ${await response.text()}`)
    await this.untilNone(`select from control.identities where state <> 'registered'`)
    ses.setDkim(sesDomain, 'SUCCESS')
    await this.query(
      `update control.domains set status = 'verified', verified_at = postern.now(),
                                  next_check_at = postern.now() + interval '1 day' where name = $1`,
      [sesDomain],
    )
    ses.hooks.onEffect = ({ mail }) => {
      if (!mail) return
      const header = mail.raw.toString('latin1', 0, mail.raw.indexOf('\r\n\r\n') + 2)
      this.received.push({ id: idIn(header), recipient: mail.to, returnPath: '', header, ses: mail })
    }
  }

  async #startSink(): Promise<SmtpSink> {
    const sink = await startSmtpSink(
      ({ from, to, header }) => {
        this.received.push({ id: idIn(header), recipient: to, returnPath: from, header })
      },
      () => 0,
      (recipient) => this.refuses(recipient),
    )
    this.#close.push(() => sink.close())
    return sink
  }

  async #start(name: PartName): Promise<void> {
    const through = new URL(this.postern.databaseUrl)
    through.port = String(this.#databases[name]?.port)
    this.#parts[name] = await this.postern.start(name, {
      environment: { ...this.#environment, POSTERN_DATABASE_URL: through.href },
    })
  }

  /** Starts recording points. The process is killed at the specified point. */
  async watch(point?: Point): Promise<void> {
    // An open session might or might not be reused, so the points would vary.
    for (const line of this.#sessions) await line.cut()
    this.#point = point && keyOf(point)
    this.#death = undefined
    this.#dead = undefined
    this.#seen = new Map()
    this.#handedOver.clear()
    this.inFlight = []
    this.passed.length = 0
    this.received.length = 0
  }

  step(name: string): void {
    this.#step = name
  }

  /** Stops recording. Returns whether the point was reached, after the killed process has been restarted. */
  async rest(): Promise<boolean> {
    this.#step = undefined
    await this.#death
    return this.#death !== undefined
  }

  /** Returns true if the process was killed at this point. */
  #meets(part: PartName, { what, when, isVain }: Passing): boolean {
    const step = this.#step
    if (step === undefined || this.#death !== undefined) return false
    const name = `${step} ${part} ${what}`
    if (isVain) {
      this.#takeBack(name, { step, part, what, when: 'before' })
      return false
    }
    const occurrence = this.#seen.get(`${name} ${when}`) ?? 0
    this.#seen.set(`${name} ${when}`, occurrence + 1)
    const point = { step, part, what, when, occurrence }
    this.passed.push(point)
    if (this.#point !== keyOf(point)) return false
    this.#dead = part
    this.#death = this.#die(part)
    return true
  }

  /** Removes the point before a statement that turned out to have no effect. */
  #takeBack(name: string, begun: Omit<Point, 'occurrence'>): void {
    const occurrence = (this.#seen.get(`${name} before`) ?? 1) - 1
    this.#seen.set(`${name} before`, occurrence)
    const key = keyOf({ ...begun, occurrence })
    const place = this.passed.findLastIndex((point) => keyOf(point) === key)
    if (place >= 0) this.passed.splice(place, 1)
  }

  async #die(name: PartName): Promise<void> {
    await this.#parts[name]?.kill()
    for (const line of this.#lines[name]) await line.cut()
    await this.#databases[name]?.cut()
    if (name === 'worker') await this.#loseLeases()
    await this.#start(name)
  }

  /** Expires the killed worker's leases. Some of the messages had already reached the MTA. */
  async #loseLeases(): Promise<void> {
    const leased = await this.query<Promised>(
      `update mail.dispatch set leased_until = postern.now() where state = 'leased'
       returning message_id as id, recipient`,
    )
    this.inFlight = leased.filter(({ recipient }) => this.#handedOver.has(recipient))
  }

  /** Makes deferred and scheduled messages due, and gives up on messages that await a report. */
  async passTime(): Promise<void> {
    await this.query(
      `update mail.dispatch set due_at = postern.now() where state in ('deferred', 'scheduled', 'awaiting')`,
    )
  }

  async query<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
    return (await this.postern.superuser.query<T>(text, values)).rows
  }

  /** Waits until a query returns no rows. */
  async untilNone(text: string, values: unknown[] = []): Promise<void> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(20)) {
      if ((await this.query(text, values)).length === 0) return
    }
    throw new Error(`Still rows after ${patienceMs / 1000} s: ${text}`)
  }

  async close(): Promise<void> {
    this.#step = undefined
    await this.#death
    for (const part of Object.values(this.#parts)) await part.kill()
    for (const step of this.#close.splice(0)) await step()
    await this.amazon.close()
    await this.postern.stop()
  }
}

const idIn = (header: string): string => /^message-id:\s*<([^@>]+)/im.exec(header)?.[1] ?? ''

export const keyOf = (point: Point): string => JSON.stringify(Object.values(point))
