import { setTimeout as sleep } from 'node:timers/promises'
import { makeSampleMessage, type SampleMessage } from '../bench/sample-message.ts'
import type { Sender } from '../bench/senders.ts'
import type { Answer, Promised } from './check.ts'
import type { Ledger } from './ledger.ts'
import { Chance } from './random.ts'

/**
 * Programs that send mail and record what they were promised. A recipient is used once in a run, so an address identifies
 * the request of a mail.
 *
 *   promised   answered 202, with the id
 *   refused    answered otherwise: nothing was promised
 *   unanswered no response: it may be sent, or not
 *
 * Some requests have an Idempotency-Key and are repeated until there is a response; the others are sent once.
 */
export interface LoadOptions {
  url: string
  senders: readonly Sender[]
  ledger: Ledger
  seed: number
  programs: number
  pauseMs: number
  /** Of a mail, about. */
  bytes?: number | undefined
  /** Where a sender's recipients are. */
  recipientsOf?: ((sender: Sender) => string) | undefined
}

export interface LoadResults {
  /** And when, by the clock of this machine, in ms. */
  promised: (Promised & { at: number })[]
  /** Recipients of requests that nobody answered. */
  unanswered: string[]
  refused: { status: number; error: string }[]
  /** Every answer that was no yes, of requests that were made again, too. */
  answers: Answer[]
  requests: number
  repetitions: number
}

export interface RunningLoad {
  loadResults: LoadResults
  stop(): Promise<void>
}

const patienceMs = 10_000
const betweenTriesMs = 200
/** After the end of the run, for an answer that is still to come. */
const lastTriesMs = 60_000

export function startLoad(options: LoadOptions): RunningLoad {
  const loadResults: LoadResults = {
    promised: [],
    unanswered: [],
    refused: [],
    answers: [],
    requests: 0,
    repetitions: 0,
  }
  const stopping = new AbortController()
  const running = Array.from({ length: options.programs }, (_, number) =>
    new Program(options, number, loadResults, stopping.signal).run(),
  )
  return {
    loadResults,
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

class Program {
  readonly #options: LoadOptions
  readonly #number: number
  readonly #loadResults: LoadResults
  readonly #stopping: AbortSignal
  readonly #chance: Chance
  readonly #sampleMessage: SampleMessage
  #requests = 0
  #stoppedAt: number | undefined

  constructor(options: LoadOptions, number: number, loadResults: LoadResults, stopping: AbortSignal) {
    this.#options = options
    this.#number = number
    this.#loadResults = loadResults
    this.#stopping = stopping
    this.#chance = new Chance(options.seed + 1000 + number)
    this.#sampleMessage = makeSampleMessage(options.bytes ?? 1500)
  }

  async run(): Promise<void> {
    const { senders, pauseMs } = this.#options
    while (!this.#stopping.aborted) {
      const sender = senders[this.#chance.between(0, senders.length - 1)]
      if (!sender) throw new Error('there is no sender')
      await this.#request(sender)
      await sleep(this.#chance.between(0, 2 * pauseMs))
    }
  }

  #hasStopped(agoMs: number): boolean {
    if (!this.#stopping.aborted) return false
    this.#stoppedAt ??= performance.now()
    return performance.now() - this.#stoppedAt > agoMs
  }

  async #request(sender: Sender): Promise<void> {
    const request = ++this.#requests
    const at = this.#options.recipientsOf?.(sender) ?? 'example.net'
    const mails = this.#chance.next() < 0.3 ? this.#chance.between(2, 10) : 1
    const recipients = Array.from({ length: mails }, (_, mail) =>
      Array.from(
        { length: this.#chance.next() < 0.2 ? 3 : 1 },
        (_, place) => `p${this.#number}-r${request}-m${mail}-${place}@${at}`,
      ),
    )
    const key = this.#chance.next() < 0.5 ? `program-${this.#number}-${request}` : undefined
    this.#loadResults.requests++
    for (;;) {
      const answer = await this.#ask(sender, recipients, key)
      if (answer) return this.#hear(recipients, answer)
      // Under a key it is asked again for as long as it takes, and so known in the end.
      if (key === undefined || this.#hasStopped(lastTriesMs)) break
      this.#loadResults.repetitions++
      await sleep(betweenTriesMs)
    }
    await this.#options.ledger.write({ unanswered: recipients.flat() })
    this.#loadResults.unanswered.push(...recipients.flat())
  }

  async #ask(
    { secret, domain }: Sender,
    recipients: string[][],
    key: string | undefined,
  ): Promise<{ status: number; body: unknown } | undefined> {
    const messages = recipients.map((to) => ({ from: `shop@${domain}`, to, ...this.#sampleMessage }))
    try {
      const response = await fetch(`${this.#options.url}/v1/messages${messages.length > 1 ? '/batch' : ''}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify(messages.length > 1 ? { messages } : messages[0]),
        signal: AbortSignal.timeout(patienceMs),
      })
      // What stands in front of Postern may speak in another way, and that is an answer, too.
      const body = asJson(await response.text())
      if (response.status !== 202) {
        const { error = 'not in our words' } = body as { error?: string }
        const hasRetryAfter = response.headers.has('retry-after')
        this.#loadResults.answers.push({ status: response.status, error, hasRetryAfter })
      }
      // The first try of this request may still be running, of a process that was killed.
      const isRunning = response.status === 409 && key !== undefined
      return isRunning || response.status >= 500 ? undefined : { status: response.status, body }
    } catch {
      return undefined
    }
  }

  async #hear(recipients: string[][], { status, body }: { status: number; body: unknown }): Promise<void> {
    const { ledger } = this.#options
    if (status !== 202) {
      const { error = '' } = body as { error?: string }
      await ledger.write({ refused: recipients.flat(), status, error })
      this.#loadResults.refused.push({ status, error })
      return
    }
    const at = performance.timeOrigin + performance.now()
    const answers = recipients.length > 1 ? (body as { data: object[] }).data : [body as object]
    for (const [place, to] of recipients.entries()) {
      const { id, error } = answers[place] as { id?: string; error?: string }
      if (id === undefined) {
        this.#loadResults.refused.push({ status, error: error ?? 'no answer' })
        this.#loadResults.answers.push({ status, error: error ?? 'no answer', hasRetryAfter: false })
        continue
      }
      for (const recipient of to) {
        await ledger.write({ promised: id, recipient })
        this.#loadResults.promised.push({ id, recipient, at })
      }
    }
  }
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
