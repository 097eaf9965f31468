import { checkResponse, type Violation } from './check-response.ts'
import type { DocumentedOperation, ServedDocument } from './document.ts'
import { Connection, type HttpResponse, NoResponse, type Request } from './http.ts'
import type { Mail } from './model/world.ts'
import type { Tally } from './tally.ts'

/** Shared by all callers in a run. */
export interface FuzzContext {
  url: string
  document: ServedDocument
  tally: Tally
  /** The acting administrator's access token, valid for several more minutes. */
  token(): string
  /** Issues a new token for the acting administrator. */
  renew(): Promise<void>
  /** Issues a token for any administrator. */
  tokenOf(email: string): Promise<string>
  actor: { id: number; email: string }
  /** Inserts users with accounts. Their addresses contain the mark. */
  makeUsers(mark: string, count: number): Promise<void>
  /** Inserts sent messages and suppressed addresses for a project. */
  makeMail(projectId: number, mail: Mail): Promise<void>
}

/** Thrown for an unexpected response. The rest of the sequence is then meaningless. */
export class ViolationError extends Error {
  override readonly name = 'ViolationError'
  readonly violations: readonly Violation[]

  constructor(violations: readonly Violation[]) {
    super(violations.map(({ kind, text }) => `${kind}: ${text}`).join('\n'))
    this.violations = violations
  }
}

export const mismatch = (faults: readonly string[]): void => {
  if (faults.length > 0) throw new ViolationError(faults.map((text) => ({ kind: 'model mismatch', text })))
}

/** One connection. Records every exchange and checks every response. */
export class Caller {
  readonly #context: FuzzContext
  readonly #connection: Connection
  #said: { request: Request; response: HttpResponse | string }[] = []

  constructor(context: FuzzContext) {
    this.#context = context
    this.#connection = new Connection(context.url)
  }

  /** `operation` is undefined for a path that does not belong to any operation. */
  async send(operation: DocumentedOperation | undefined, request: Request): Promise<HttpResponse> {
    const name = operation?.id ?? 'nowhere'
    let response: HttpResponse
    try {
      response = await this.#connection.send(request)
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error
      this.#said.push({ request, response: error.message })
      this.#context.tally.recordResponse(name, 'none')
      throw new ViolationError([{ kind: 'no response', text: error.message }])
    }
    this.#said.push({ request, response })
    this.#context.tally.recordResponse(name, response.status)
    const violations = checkResponse(operation, request, response)
    if (violations.length > 0) throw new ViolationError(violations)
    return response
  }

  /** Every exchange since the last `forget()`, one per paragraph. */
  trail(): string {
    return this.#said
      .map(({ request, response }) => `${formatRequest(request)}\n${formatResponse(response)}`)
      .join('\n\n')
  }

  forget(): void {
    this.#said = []
  }

  close(): void {
    this.#connection.close()
  }
}

const maxShownChars = 3000

function formatRequest({ method, path, headers, body, chunks, raw }: Request): string {
  if (raw) return `> ${JSON.stringify(raw.toString('latin1')).slice(0, maxShownChars)}`
  const shown = headers.map(([name, value]) =>
    name === 'authorization' && value.length > 60 ? `${name}: Bearer <token>` : `${name}: ${value}`,
  )
  const text = Buffer.isBuffer(body) ? `(base64) ${body.toString('base64')}` : (body ?? '')
  return [
    `> ${method} ${path}`,
    ...shown.map((line) => `> ${line}`),
    ...(chunks ? [`> (in chunks of ${chunks.join(', ')})`] : []),
    `> ${text.slice(0, maxShownChars)}`,
  ].join('\n')
}

function formatResponse(response: HttpResponse | string): string {
  if (typeof response === 'string') return `< ${response}`
  const named = ['etag', 'location', 'idempotent-replayed', 'x-request-id']
  const headers = named.flatMap((name) => {
    const value = response.headers.get(name)
    return value === undefined ? [] : [`${name}: ${value}`]
  })
  return `< ${response.status} ${headers.join(', ')}\n< ${response.text.slice(0, maxShownChars)}`
}
