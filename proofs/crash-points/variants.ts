import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import { makeSampleMessage } from '../../bench/sample-message.ts'
import type { SesEventType } from '../../server/src/testing/peers/ses-events.ts'
import type { Evidence, Promised } from '../check.ts'
import { complaint, deliveryReport } from '../reports.ts'
import { type Installation, patienceMs, type Received } from './installation.ts'
import { type Submission, submit } from './submit.ts'

/**
 * The life cycles of a message, each run once for every point. A client that gets no response retries its call, as MTAs
 * and programs with an Idempotency-Key do.
 *
 * A new provider or listener needs a variant, and a proxy in installation.ts.
 */
export interface Variant extends Outcome {
  name: string
  /** The number of recipients of each message. */
  shape: readonly number[]
  /** The steps after acceptance. */
  goOn(life: Life): Promise<void>
  /** The scheduled time, if the message is not sent immediately. */
  sendAt?: () => string
  /** The MTA's first reply for a recipient, if the recipient is not accepted. */
  firstAnswer?: string
  /** Whether the message is submitted by SMTP instead of through the API. */
  isSubmitted?: boolean
  /** Whether the message is sent from the domain that uses SES. */
  isBySes?: boolean
  /** The outcome if the worker crashed before the provider accepted the message and the result is unknown. */
  otherwise?: Outcome
}

export interface Outcome {
  finalStatus: string
  expectedEvents: Evidence['expectedEvents']
  isReceived: boolean
  isSuppressed: boolean
}

const never = [0, 0] as const
const once = [1, 1] as const
/** A process that crashes between receiving the reply and recording it writes no event. */
const atMostOnce = [0, 1] as const
const nothing: Evidence['expectedEvents'] = {
  'message.sent': never,
  'message.deferred': never,
  'message.delivered': never,
  'message.bounced': never,
  'message.failed': never,
  'message.complained': never,
  'message.suppressed': never,
}
const delivered = {
  finalStatus: 'delivered',
  expectedEvents: { ...nothing, 'message.sent': once, 'message.delivered': once },
  isReceived: true,
  isSuppressed: false,
}
const failed = {
  finalStatus: 'failed',
  expectedEvents: { ...nothing, 'message.failed': once },
  isReceived: false,
  isSuppressed: false,
}
const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString()

export const variants: readonly Variant[] = [
  {
    name: 'one message, delivered',
    shape: [1],
    goOn: async (life) => {
      await life.handedOver()
      await life.report(delivery)
    },
    ...delivered,
  },
  {
    name: 'a batch with several recipients',
    shape: [1, 3],
    goOn: async (life) => {
      await life.handedOver()
      await life.report(delivery)
    },
    ...delivered,
  },
  {
    name: 'deferred, then sent',
    shape: [1],
    firstAnswer: '451 4.2.1 Not now',
    goOn: async (life) => {
      await life.putOff()
      await life.comeDue()
      await life.handedOver()
      await life.report(delivery)
    },
    ...delivered,
    expectedEvents: { ...delivered.expectedEvents, 'message.deferred': atMostOnce },
  },
  {
    name: 'bounced after the MTA accepted it',
    shape: [1],
    goOn: async (life) => {
      await life.handedOver()
      await life.report(bounce)
    },
    finalStatus: 'bounced',
    expectedEvents: { ...nothing, 'message.sent': once, 'message.bounced': once },
    isReceived: true,
    isSuppressed: true,
  },
  {
    name: 'complaint',
    shape: [1],
    goOn: async (life) => {
      await life.handedOver()
      await life.report(complain)
    },
    finalStatus: 'complained',
    expectedEvents: { ...nothing, 'message.sent': once, 'message.complained': once },
    isReceived: true,
    isSuppressed: true,
  },
  {
    name: 'scheduled, then sent',
    shape: [1],
    sendAt: inAnHour,
    goOn: async (life) => {
      await life.comeDue()
      await life.handedOver()
      await life.report(delivery)
    },
    ...delivered,
  },
  {
    name: 'scheduled, then canceled',
    shape: [1],
    sendAt: inAnHour,
    goOn: async (life) => {
      await life.cancel()
      await life.comeDue()
    },
    finalStatus: 'canceled',
    expectedEvents: nothing,
    isReceived: false,
    isSuppressed: false,
  },
  {
    name: 'submitted by SMTP',
    shape: [1],
    isSubmitted: true,
    goOn: async (life) => {
      await life.handedOver()
      await life.report(delivery)
    },
    ...delivered,
  },
  {
    name: 'sent by SES, reported by SNS',
    shape: [1],
    isBySes: true,
    goOn: async (life) => {
      await life.handedOverOrInDoubt()
      await life.publishReports(['Send', 'Delivery'])
      // If SES accepted the message, it has sent a report. Otherwise the message fails when it becomes due.
      if (!life.isTaken) await life.comeDue()
      await life.handedOver()
    },
    ...delivered,
    otherwise: failed,
  },
]

interface Brought {
  to: string
  raw: string
}
type Report = (mail: Received) => Brought

const reportedOf = ({ id, recipient, returnPath, header }: Received) => ({
  messageId: /^message-id:\s*(\S+)/im.exec(header)?.[1] ?? id,
  recipient,
  returnPath,
})
const delivery: Report = (mail) => ({
  to: mail.returnPath,
  raw: deliveryReport(reportedOf(mail), 'delivered', '2.0.0'),
})
const bounce: Report = (mail) => ({
  to: mail.returnPath,
  raw: deliveryReport(reportedOf(mail), 'failed', '5.1.1'),
})
const complain: Report = (mail) => ({ to: 'fbl@localhost', raw: complaint(reportedOf(mail)) })

const sampleMessage = makeSampleMessage(1500)
const betweenTriesMs = 50

export class Life {
  readonly promised: Promised[] = []
  /** Number of complete SMTP submissions without a 250. Each may have been stored without an acknowledgement. */
  unanswered = 0
  readonly recipients: string[][]
  readonly #installation: Installation
  readonly #variant: Variant
  readonly #name: string

  /** `name` is part of every address and unique in the run. */
  constructor(installation: Installation, variant: Variant, name: string) {
    this.#installation = installation
    this.#variant = variant
    this.#name = name
    this.recipients = variant.shape.map((count, mail) =>
      Array.from({ length: count }, (_, place) => `${name}-m${mail}-${place}@example.net`),
    )
  }

  async live(): Promise<void> {
    const answered = new Set<string>()
    const { firstAnswer, goOn } = this.#variant
    this.#installation.refuses = (recipient) => {
      if (firstAnswer === undefined || answered.has(recipient)) return undefined
      answered.add(recipient)
      return firstAnswer
    }
    this.#installation.step('sending')
    await (this.#variant.isSubmitted ? this.#submit() : this.#send())
    await goOn(this)
  }

  get #from(): string {
    return `shop@${this.#variant.isBySes ? this.#installation.sesDomain : this.#installation.sender.domain}`
  }

  /** Retries until there is a 250. Nothing identifies the retries as the same message. */
  async #submit(): Promise<void> {
    const { submissionPort, sender } = this.#installation
    for (const to of this.recipients) {
      const mail = { from: this.#from, to, sampleMessage, password: sender.secret }
      const id = await this.#untilTaken(submissionPort, mail)
      for (const recipient of to) this.promised.push({ id, recipient })
    }
  }

  async #untilTaken(port: number, mail: Submission): Promise<string> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(betweenTriesMs)) {
      const { id, isWhole } = await submit(port, mail)
      if (id !== undefined) return id
      if (isWhole) this.unanswered++
    }
    throw new Error('the message was not accepted')
  }

  async #send(): Promise<void> {
    const { sendAt } = this.#variant
    const schedule = sendAt && { send_at: sendAt() }
    const messages = this.recipients.map((to) => ({ from: this.#from, to, ...sampleMessage, ...schedule }))
    const isBatch = messages.length > 1
    const body = await this.#post(
      isBatch ? '/v1/messages/batch' : '/v1/messages',
      isBatch ? { messages } : (messages[0] ?? {}),
      202,
    )
    const answers = (isBatch ? body['data'] : [body]) as { id: string }[]
    for (const [place, to] of this.recipients.entries()) {
      for (const recipient of to) this.promised.push({ id: answers[place]?.id ?? '', recipient })
    }
  }

  async cancel(): Promise<void> {
    this.#installation.step('canceling')
    await this.#post(`/v1/messages/${this.promised[0]?.id}/cancel`, {}, 200)
  }

  /** Retries until there is a response. With the idempotency key, all attempts count as one request. */
  async #post(path: string, body: object, status: number): Promise<Record<string, unknown>> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(betweenTriesMs)) {
      const response = await fetch(`${this.#installation.url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#installation.sender.secret}`,
          'content-type': 'application/json',
          'idempotency-key': `${this.#name}${path}`,
          // A kept-alive connection could be closed at the moment it is reused.
          connection: 'close',
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(10_000),
      }).catch(() => undefined)
      const text = await response?.text().catch(() => undefined)
      if (!response || text === undefined || response.status >= 500) continue
      if (response.status !== status) throw new Error(`${path} answered ${response.status}: ${text}`)
      return JSON.parse(text)
    }
    throw new Error(`${path} was not answered`)
  }

  /** Waits until the message is deferred, or until the MTA has accepted it from the restarted worker. */
  async putOff(): Promise<void> {
    await this.#installation.untilNone(`${this.#waiting} and state <> 'deferred'`, [this.#pattern])
  }

  async comeDue(): Promise<void> {
    this.#installation.step('coming due')
    await this.#installation.passTime()
  }

  async handedOver(): Promise<void> {
    await this.#installation.untilNone(this.#waiting, [this.#pattern])
  }

  /** Also accepts messages that await a report from SES. */
  async handedOverOrInDoubt(): Promise<void> {
    await this.#installation.untilNone(`${this.#waiting} and state <> 'awaiting'`, [this.#pattern])
  }

  get isTaken(): boolean {
    return this.#installation.received.length > 0
  }

  /** Publishes SNS notifications about every message that SES has accepted. */
  async publishReports(types: readonly SesEventType[]): Promise<void> {
    this.#installation.step('reports from SNS')
    for (const { ses } of [...this.#installation.received]) {
      if (ses) await this.#installation.amazon.publishReports(this.#installation.url, ses, types)
    }
  }

  /** Reports every received message, retrying until the report is accepted. */
  async report(reportOf: Report): Promise<void> {
    this.#installation.step('reporting')
    for (const mail of [...this.#installation.received]) await this.#bring(reportOf(mail))
  }

  async #bring({ to, raw }: Brought): Promise<void> {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(betweenTriesMs)) {
      const transport = nodemailer.createTransport({
        host: '127.0.0.1',
        port: this.#installation.intakePort,
        ignoreTLS: true,
        connectionTimeout: 2000,
        greetingTimeout: 5000,
        socketTimeout: 10_000,
      })
      try {
        await transport.sendMail({ envelope: { from: '', to: [to] }, raw })
        return
      } catch (error) {
        const { responseCode = 0, message } = error as Error & { responseCode?: number }
        if (responseCode >= 500) throw new Error(`the report was rejected: ${message}`)
      } finally {
        transport.close()
      }
    }
    throw new Error('the report was not accepted')
  }

  get #pattern(): string {
    return `${this.#name}-%`
  }

  readonly #waiting = 'select from mail.dispatch where recipient like $1'
}
