import type { Dispatcher } from 'undici'
import { NotAllowed } from '../../../platform/net/net-guard.ts'
import { storable } from '../messages/events.ts'
import { retryAfterMs } from './retry-schedule.ts'

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

/** Never rejects, and resolves within `timeoutMs` (usually `requestMs`). Redirects are not followed. */
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

/**
 * Undici's callbacks for one request. Creating a stream for each body would cost as much as all other work
 * combined.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: ReceiverResponse) => void
  readonly #timeoutMs: number
  readonly #startedAt = performance.now()
  readonly #chunks: Buffer[] = []
  #receivedBytes = 0
  #status: number | null = null
  #retryAfterMs: number | undefined
  #controller: Dispatcher.DispatchController | undefined
  #timer: NodeJS.Timeout
  #isEnded = false

  constructor(resolve: (answer: ReceiverResponse) => void, timeoutMs: number) {
    this.#resolve = resolve
    this.#timeoutMs = timeoutMs
    this.#timer = setTimeout(() => this.#timeOut(), timeoutMs)
  }

  end(error: unknown): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#timer)
    const status = this.#status
    const text = Buffer.concat(this.#chunks).subarray(0, keptBytes).toString()
    this.#resolve({
      status,
      latencyMs: Math.round(performance.now() - this.#startedAt),
      response: status === null ? null : storable(text),
      error: status === null ? sentenceOf(error) : null,
      retryAfterMs: this.#retryAfterMs,
    })
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
    this.#retryAfterMs = retryAfterMs([headers['retry-after']].flat()[0], Date.now())
    clearTimeout(this.#timer)
    const leftMs = this.#timeoutMs - (performance.now() - this.#startedAt)
    this.#timer = setTimeout(() => this.#timeOut(), Math.max(0, Math.min(bodyMs, leftMs)))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#receivedBytes < keptBytes) this.#chunks.push(chunk)
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

  #timeOut(): void {
    this.end(new TimedOut())
    this.#controller?.abort(new TimedOut())
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
