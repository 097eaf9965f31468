import type { Dispatcher } from 'undici'
import { NotAllowed } from '../../../platform/net/net-guard.ts'
import { storable } from '../messages/events.ts'
import { retryAfterMs } from './retry-schedule.ts'
import type { WebhookBody } from './signature.ts'

/** A receiver's response. */
export interface ReceiverResponse {
  /** Null if there is no response; `error` then contains the reason as a sentence. */
  status: number | null
  latencyMs: number
  /** The first KB of the response body. */
  response: string | null
  error: string | null
  retryAfterMs: number | undefined
}

/** Timeout for a request, from the DNS lookup to the response status. */
export const requestMs = 15_000
/** Timeout for reading the response body. Only the status matters, and it has been received by then. */
const bodyMs = 2_000
const keptBytes = 1024
/**
 * A body up to this size is read to its end so that the connection can be reused. After a longer body, the
 * connection is closed.
 */
const drainedBytes = 64 * 1024

/** How often the deadlines of all open requests are checked. This replaces two timers for each request. */
const sweepMs = 250

/** A signed request. */
export interface WebhookRequest {
  origin: string
  /** Includes the query. */
  path: string
  headers: Record<string, string>
  body: WebhookBody
}

/** Posts webhooks. Redirects are not followed. */
export class WebhookClient {
  readonly #agent: Dispatcher
  readonly #timeoutMs: number
  readonly #open = new Set<Exchange>()
  #sweeper: NodeJS.Timeout | undefined

  /** `timeoutMs` is the timeout from the DNS lookup to the response status, usually `requestMs`. */
  constructor(agent: Dispatcher, timeoutMs: number) {
    this.#agent = agent
    this.#timeoutMs = timeoutMs
  }

  /** Calls `done` once, at the latest after the timeout. Never throws. */
  post({ origin, path, headers, body }: WebhookRequest, done: (response: ReceiverResponse) => void): void {
    const exchange = new Exchange(this.#timeoutMs, (response) => {
      this.#close(exchange)
      done(response)
    })
    this.#open.add(exchange)
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs)
    try {
      this.#agent.dispatch({ origin, path, method: 'POST', headers, body }, exchange)
    } catch (error) {
      exchange.end(error)
    }
  }

  #sweep(): void {
    const now = performance.now()
    for (const exchange of this.#open) exchange.endIfOverdue(now)
  }

  #close(exchange: Exchange): void {
    this.#open.delete(exchange)
    if (this.#open.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/**
 * Undici's callbacks for one request. Creating a stream for each body would cost as much as all other work
 * combined.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #done: (response: ReceiverResponse) => void
  readonly #startedAt = performance.now()
  #endsAt: number
  #chunks: Buffer[] | undefined
  #receivedBytes = 0
  #status: number | null = null
  #retryAfterMs: number | undefined
  #controller: Dispatcher.DispatchController | undefined
  #isEnded = false

  constructor(timeoutMs: number, done: (response: ReceiverResponse) => void) {
    this.#done = done
    this.#endsAt = this.#startedAt + timeoutMs
  }

  end(error: unknown): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const status = this.#status
    this.#done({
      status,
      latencyMs: Math.round(performance.now() - this.#startedAt),
      response: status === null ? null : this.#text(),
      error: status === null ? sentenceOf(error) : null,
      retryAfterMs: this.#retryAfterMs,
    })
  }

  endIfOverdue(now: number): void {
    if (now < this.#endsAt) return
    this.end(new TimedOut())
    this.#controller?.abort(new TimedOut())
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isEnded) controller.abort(new TimedOut())
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx is an interim response.
    if (status < 200) return
    this.#status = status
    const retryAfter = headers['retry-after']
    if (retryAfter !== undefined) this.#retryAfterMs = retryAfterMs([retryAfter].flat()[0], Date.now())
    this.#endsAt = Math.min(this.#endsAt, performance.now() + bodyMs)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#receivedBytes < keptBytes) {
      this.#chunks ??= []
      this.#chunks.push(chunk)
    }
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes <= drainedBytes) return
    this.end(undefined)
    controller.abort(new Error('response body too long'))
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(error)
  }

  #text(): string {
    if (!this.#chunks) return ''
    return storable(Buffer.concat(this.#chunks).subarray(0, keptBytes).toString())
  }
}

class TimedOut extends Error {}

const sentences: [codes: RegExp, sentence: string][] = [
  [/^(ENOTFOUND|EAI_AGAIN|ENODATA)$/, 'The host name could not be resolved.'],
  [/^ECONNREFUSED$/, 'The connection was refused.'],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'The connection timed out after 5 seconds.'],
  [/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/, 'No response within 15 seconds.'],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'The host is unreachable.'],
  [/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/, 'The connection was closed before a response.'],
  [/^(CERT_|ERR_TLS_CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/, 'The certificate is not trusted'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'The TLS handshake failed.'],
  [/^(HPE_|UND_ERR_)/, 'The response is not valid HTTP.'],
]

/** Customers see only these sentences and known codes, never text from the receiver or from libraries. */
function sentenceOf(error: unknown): string {
  if (error instanceof TimedOut) return 'No response within 15 seconds.'
  const refusal = causesOf(error).find((cause) => cause instanceof NotAllowed)
  if (refusal) return refusal.message
  const codes = causesOf(error).flatMap(({ code }: NodeJS.ErrnoException) => code ?? [])
  for (const code of codes) {
    const [, sentence] = sentences.find(([form]) => form.test(code)) ?? []
    if (sentence !== undefined) return sentence.endsWith('.') ? sentence : `${sentence} (${code}).`
  }
  return 'The connection failed.'
}

/** An error, its causes and, if several addresses were tried, the error of each. */
function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return []
  const parts = error instanceof AggregateError ? error.errors : []
  return [error, ...[error.cause, ...parts].flatMap(causesOf)]
}
