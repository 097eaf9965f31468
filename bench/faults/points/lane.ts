import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../server/src/testing/postgres.ts'
import { type Part, type PartName, type Postern, startPostern } from '../../postern.ts'
import { makeSenders, type Sender } from '../../senders.ts'
import { type SmtpSink, startSmtpSink } from '../../smtp-sink.ts'
import type { Promised } from '../check.ts'
import { readPostgres } from './postgres.ts'
import { readSmtp } from './smtp.ts'
import { openTap, type Passing, readHttp, type Tap } from './tap.ts'

/**
 * A Postern in three processes, each with a tap on every line that it has: to PostgreSQL, to the MTA, from whoever
 * calls it. At a point that was chosen the process that it belongs to is killed, and started again.
 */
export interface Point {
  /** Of the variant: the same thing may be said in several of them. */
  step: string
  part: PartName
  what: string
  when: Passing['when']
  /** How often it happened before in this step. */
  occurrence: number
}

export interface Received extends Promised {
  returnPath: string
  header: string
}

export const describePoint = ({ step, part, what, when, occurrence }: Point): string =>
  `${step}: ${part}, ${when} ${what}${occurrence > 0 ? ` no. ${occurrence + 1}` : ''}`

/** For a machine that does much else. */
export const patienceMs = 90_000

type PartTaps = Record<'database' | 'line', Tap | undefined>

export class Lane {
  readonly postern: Postern
  readonly sender: Sender
  /** What the MTA has said yes to, and what it answers to a recipient instead. */
  readonly received: Received[] = []
  refuses: (recipient: string) => string | undefined = () => undefined
  /** Every point that was passed since `watch`. */
  readonly passed: Point[] = []
  /** The recipients that were in flight at the death. */
  inFlight: Promised[] = []
  readonly #environment: Record<string, string>
  readonly #parts: Partial<Record<PartName, Part>> = {}
  readonly #taps: Partial<Record<PartName, PartTaps>> = {}
  readonly #close: (() => unknown)[] = []
  readonly #handedOver = new Set<string>()
  #seen = new Map<string, number>()
  #step: string | undefined
  #point: string | undefined
  #death: Promise<void> | undefined
  #ports = { api: 0, intake: 0 }

  private constructor(postern: Postern, sender: Sender, environment: Record<string, string>) {
    this.postern = postern
    this.sender = sender
    this.#environment = environment
  }

  static async open(environment: Record<string, string> = {}): Promise<Lane> {
    const postern = await startPostern({ environment })
    const [sender] = await makeSenders(postern, 1)
    if (!sender) throw new Error('nobody sends')
    const lane = new Lane(postern, sender, { ...environment })
    await postern.api.stop()
    await lane.#layLines()
    return lane
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ports.api}`
  }

  /** Where reports are brought. */
  get intakePort(): number {
    return this.#ports.intake
  }

  async #layLines(): Promise<void> {
    const sink = await this.#startSink()
    const databasePort = Number(new URL(this.postern.databaseUrl).port)
    const tap = async (part: PartName, port: number, read: Parameters<typeof openTap>[2]): Promise<Tap> => {
      const opened = await openTap(port, (passing) => this.#meets(part, passing), read)
      this.#close.push(() => opened.close())
      return opened
    }
    const [http, smtp] = [await freePort(), await freePort()]
    const lines: Record<PartName, Tap> = {
      api: await tap('api', http, readHttp),
      worker: await tap('worker', sink.port, (watch) =>
        readSmtp(watch, (recipient) => this.#handedOver.add(recipient)),
      ),
      intake: await tap('intake', smtp, readSmtp),
    }
    this.#ports = { api: lines.api.port, intake: lines.intake.port }
    Object.assign(this.#environment, {
      POSTERN_HTTP_PORT: String(http),
      POSTERN_BOUNCE_PORT: String(smtp),
      POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${lines.worker.port}`,
    })
    for (const name of ['api', 'worker', 'intake'] as const) {
      this.#taps[name] = { database: await tap(name, databasePort, readPostgres), line: lines[name] }
      await this.#start(name)
    }
  }

  async #startSink(): Promise<SmtpSink> {
    const sink = await startSmtpSink(
      ({ from, to, header }) => {
        const [, id = ''] = /^message-id:\s*<([^@>]+)/im.exec(header) ?? []
        this.received.push({ id, recipient: to, returnPath: from, header })
      },
      0,
      (recipient) => this.refuses(recipient),
    )
    this.#close.push(() => sink.close())
    return sink
  }

  async #start(name: PartName): Promise<void> {
    const through = new URL(this.postern.databaseUrl)
    through.port = String(this.#taps[name]?.database?.port)
    this.#parts[name] = await this.postern.start(name, {
      environment: { ...this.#environment, POSTERN_DATABASE_URL: through.href },
    })
  }

  /** From now on what passes is noted, and a process dies at the point that is given. */
  async watch(point?: Point): Promise<void> {
    // A session that was left open would be used on or not, as it happens.
    await this.#taps.worker?.line?.cut()
    await this.#taps.intake?.line?.cut()
    this.#point = point && keyOf(point)
    this.#death = undefined
    this.#seen = new Map()
    this.#handedOver.clear()
    this.inFlight = []
    this.passed.length = 0
    this.received.length = 0
  }

  step(name: string): void {
    this.#step = name
  }

  /** Nothing is noted any more. True if the point was met, once whoever died at it lives again. */
  async rest(): Promise<boolean> {
    this.#step = undefined
    await this.#death
    return this.#death !== undefined
  }

  /** True when somebody was killed over it. */
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
    this.#death = this.#die(part)
    return true
  }

  /** It had no effect, so its beginning was none of the points. */
  #takeBack(name: string, begun: Omit<Point, 'occurrence'>): void {
    const occurrence = (this.#seen.get(`${name} before`) ?? 1) - 1
    this.#seen.set(`${name} before`, occurrence)
    const key = keyOf({ ...begun, occurrence })
    const place = this.passed.findLastIndex((point) => keyOf(point) === key)
    if (place >= 0) this.passed.splice(place, 1)
  }

  async #die(name: PartName): Promise<void> {
    await this.#parts[name]?.kill()
    await this.#taps[name]?.line?.cut()
    await this.#taps[name]?.database?.cut()
    if (name === 'worker') await this.#loseLeases()
    await this.#start(name)
  }

  /** A minute goes by: what the dead one had is given to the next. Some of it was with the MTA already. */
  async #loseLeases(): Promise<void> {
    const leased = await this.query<Promised>(
      `update mail.dispatch set leased_until = postern.now() where state = 'leased'
       returning message_id as id, recipient`,
    )
    this.inFlight = leased.filter(({ recipient }) => this.#handedOver.has(recipient))
  }

  /** What was put off is due. */
  async passTime(): Promise<void> {
    await this.query(
      `update mail.dispatch set due_at = postern.now() where state in ('deferred', 'scheduled')`,
    )
  }

  async query<T extends object>(text: string, values: unknown[] = []): Promise<T[]> {
    return (await this.postern.superuser.query<T>(text, values)).rows
  }

  /** Waits until a statement finds nothing. */
  async untilNone(text: string, values: unknown[] = []): Promise<void> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(20)) {
      if ((await this.query(text, values)).length === 0) return
    }
    throw new Error(`It was not so in ${patienceMs / 1000} s: nothing of ${text}`)
  }

  async close(): Promise<void> {
    this.#step = undefined
    await this.#death
    for (const part of Object.values(this.#parts)) await part.kill()
    for (const step of this.#close.splice(0)) await step()
    await this.postern.stop()
  }
}

export const keyOf = (point: Point): string => JSON.stringify(Object.values(point))
