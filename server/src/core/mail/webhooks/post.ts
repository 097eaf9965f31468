import type { Dispatcher } from 'undici'
import { NotAllowed } from '../../../platform/net/net-guard.ts'
import { storable } from '../messages/events.ts'
import { retryAfterMs } from './retry-schedule.ts'

/** What a receiver made of a request. */
export interface ReceiverResponse {
  /** Null where there was none; then `error` says why, in a sentence. */
  status: number | null
  latencyMs: number
  /** The beginning of what it said. */
  response: string | null
  error: string | null
  retryAfterMs: number | undefined
}

/** In all, from the look-up of its name to the status. */
export const requestMs = 15_000
/** The status has been heard by then, and decides. What it says besides is waited for no longer than this. */
const bodyMs = 2_000
const keptBytes = 1024
/** Read on to here, so that the connection can be used again; what says more than that loses it. */
const drainedBytes = 64 * 1024

/**
 * Resolves whatever happens, within `timeoutMs` (usually `requestMs`). Nothing is followed: a redirect is an answer like
 * any other.
 */
export function post(
  agent: Dispatcher,
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  timeoutMs: number,
): Promise<ReceiverResponse> {
  return new Promise((resolve) => {
    const exchange = new Exchange(resolve, timeoutMs)
    try {
      agent.dispatch(
        { origin: url.origin, path: url.pathname + url.search, method: 'POST', headers, body },
        exchange,
      )
    } catch (error) {
      exchange.end(error)
    }
  })
}

/** A request and its answer, as undici tells of them. A stream for each body would cost as much as all the rest. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: ReceiverResponse) => void
  readonly #timeoutMs: number
  readonly #startedAt = performance.now()
  readonly #kept: Buffer[] = []
  #said = 0
  #status: number | null = null
  #retryAfterMs: number | undefined
  #control: Dispatcher.DispatchController | undefined
  #patience: NodeJS.Timeout
  #isOver = false

  constructor(resolve: (answer: ReceiverResponse) => void, timeoutMs: number) {
    this.#resolve = resolve
    this.#timeoutMs = timeoutMs
    this.#patience = setTimeout(() => this.#giveUp(), timeoutMs)
  }

  end(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#patience)
    const status = this.#status
    const text = Buffer.concat(this.#kept).subarray(0, keptBytes).toString()
    this.#resolve({
      status,
      latencyMs: Math.round(performance.now() - this.#startedAt),
      response: status === null ? null : storable(text),
      error: status === null ? sentenceOf(error) : null,
      retryAfterMs: this.#retryAfterMs,
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#control = controller
    if (this.#isOver) controller.abort(new TimedOut())
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx announces an answer.
    if (status < 200) return
    this.#status = status
    this.#retryAfterMs = retryAfterMs([headers['retry-after']].flat()[0], Date.now())
    clearTimeout(this.#patience)
    const leftMs = this.#timeoutMs - (performance.now() - this.#startedAt)
    this.#patience = setTimeout(() => this.#giveUp(), Math.max(0, Math.min(bodyMs, leftMs)))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#said < keptBytes) this.#kept.push(chunk)
    this.#said += chunk.length
    if (this.#said <= drainedBytes) return
    this.end(undefined)
    controller.abort(new Error('it says too much'))
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(error)
  }

  #giveUp(): void {
    this.end(new TimedOut())
    this.#control?.abort(new TimedOut())
  }
}

class TimedOut extends Error {}

const sentences: [codes: RegExp, sentence: string][] = [
  [/^(ENOTFOUND|EAI_AGAIN|ENODATA)$/, 'The name could not be found in the DNS.'],
  [/^ECONNREFUSED$/, 'The connection was refused.'],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'No connection could be made within 5 seconds.'],
  [/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/, 'There was no answer within 15 seconds.'],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'The host cannot be reached.'],
  [/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/, 'The connection was closed before there was an answer.'],
  [
    /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/,
    'The certificate is not one that can be trusted',
  ],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'No encrypted connection could be made (TLS).'],
  [/^(HPE_|UND_ERR_)/, 'The answer is not one of HTTP.'],
]

/** Nothing of what a stranger's machine or our own libraries said goes to the customer but codes that are known. */
function sentenceOf(error: unknown): string {
  if (error instanceof TimedOut) return 'There was no answer within 15 seconds.'
  const refusal = causesOf(error).find((cause) => cause instanceof NotAllowed)
  if (refusal) return refusal.message
  const codes = causesOf(error).flatMap(({ code }: NodeJS.ErrnoException) => code ?? [])
  for (const code of codes) {
    const [, sentence] = sentences.find(([form]) => form.test(code)) ?? []
    if (sentence !== undefined) return sentence.endsWith('.') ? sentence : `${sentence} (${code}).`
  }
  return 'No connection could be made.'
}

/** An error, what caused it, and, where several addresses were tried, what became of each. */
function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return []
  const parts = error instanceof AggregateError ? error.errors : []
  return [error, ...[error.cause, ...parts].flatMap(causesOf)]
}
