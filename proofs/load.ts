import { setTimeout as sleep } from 'node:timers/promises'
import { makeSampleMessage, type SampleMessage } from '../bench/sample-message.ts'
import type { Sender } from '../bench/senders.ts'
import type { Answer, Promised } from './check.ts'
import type { Ledger } from './ledger.ts'
import { Chance } from './random.ts'

/**
 * Clients that send messages and record the responses. A recipient is used only once in a run, so its address
 * identifies the request.
 *
 *   promised   202 with an id
 *   refused    any other response
 *   unanswered no response: the message may or may not be sent
 *
 * Some requests have an Idempotency-Key and are retried until there is a response; the others are sent once.
 */
export interface LoadOptions {
  url: string
  senders: readonly Sender[]
  ledger: Ledger
  seed: number
  programs: number
  pauseMs: number
  /** The approximate size of a message. */
  bytes?: number | undefined
  /** The domain of a sender's recipients. */
  recipientsOf?: ((sender: Sender) => string) | undefined
}

export interface LoadResults {
  /** Acknowledged messages with the time in ms, by this machine's clock. */
  promised: (Promised & { at: number })[]
  /** Recipients of requests without a response. */
  unanswered: string[]
  refused: { status: number; error: string }[]
  /** Every unsuccessful response, including those to retries. */
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
/** How long unanswered requests continue to be retried after the end of the run. */
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
      if (!sender) throw new Error('there are no senders')
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
      // A request with a key is retried until there is a response.
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
      // A proxy in front of Postern can respond with something other than JSON.
      const body = asJson(await response.text())
      if (response.status !== 202) {
        const { error = 'not an API error' } = body as { error?: string }
        const hasRetryAfter = response.headers.has('retry-after')
        this.#loadResults.answers.push({ status: response.status, error, hasRetryAfter })
      }
      // The first attempt of this request, sent to a killed process, may still be in progress.
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
        this.#loadResults.refused.push({ status, error: error ?? 'no id' })
        this.#loadResults.answers.push({ status, error: error ?? 'no id', hasRetryAfter: false })
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
