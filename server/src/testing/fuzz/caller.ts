import type { DocumentedOperation, ServedDocument } from './document.ts'
import { type Answer, Connection, NoAnswer, type Request } from './http.ts'
import { type Complaint, judge } from './judge.ts'
import type { Mail } from './model/world.ts'
import type { Tally } from './tally.ts'

/** What all who call share. */
export interface Stage {
  url: string
  document: ServedDocument
  tally: Tally
  /** Of the administrator who acts; good for some minutes yet. */
  token(): string
  /** Draws another one. */
  renew(): Promise<void>
  /** Of any administrator. */
  tokenOf(email: string): Promise<string>
  actor: { id: number; email: string }
  /** People with an account, whose addresses have the mark in them. */
  makeUsers(mark: string, count: number): Promise<void>
  /** Mail of a project, as if it had sent it, and addresses to which it sends no more. */
  makeMail(projectId: number, mail: Mail): Promise<void>
}

/** Thrown where an answer was not what it must be; the rest of the sequence would mean nothing. */
export class Found extends Error {
  override readonly name = 'Found'
  readonly complaints: readonly Complaint[]

  constructor(complaints: readonly Complaint[]) {
    super(complaints.map(({ kind, text }) => `${kind}: ${text}`).join('\n'))
    this.complaints = complaints
  }
}

export const mismatch = (faults: readonly string[]): void => {
  if (faults.length > 0) throw new Found(faults.map((text) => ({ kind: 'model mismatch', text })))
}

/** One connection, everything said on it, and the judge listening. */
export class Caller {
  readonly #stage: Stage
  readonly #connection: Connection
  #said: { request: Request; answer: Answer | string }[] = []

  constructor(stage: Stage) {
    this.#stage = stage
    this.#connection = new Connection(stage.url)
  }

  /** Undefined: an address where there is no operation. */
  async send(operation: DocumentedOperation | undefined, request: Request): Promise<Answer> {
    const name = operation?.id ?? 'nowhere'
    let answer: Answer
    try {
      answer = await this.#connection.send(request)
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error
      this.#said.push({ request, answer: error.message })
      this.#stage.tally.answered(name, 'none')
      throw new Found([{ kind: 'no answer', text: error.message }])
    }
    this.#said.push({ request, answer })
    this.#stage.tally.answered(name, answer.status)
    const complaints = judge(operation, request, answer)
    if (complaints.length > 0) throw new Found(complaints)
    return answer
  }

  /** Everything since the last time it was forgotten, one exchange a paragraph. */
  trail(): string {
    return this.#said.map(({ request, answer }) => `${told(request)}\n${toldAnswer(answer)}`).join('\n\n')
  }

  forget(): void {
    this.#said = []
  }

  close(): void {
    this.#connection.close()
  }
}

const most = 3000

function told({ method, path, headers, body, chunks, raw }: Request): string {
  if (raw) return `> ${JSON.stringify(raw.toString('latin1')).slice(0, most)}`
  const shown = headers.map(([name, value]) =>
    name === 'authorization' && value.length > 60 ? `${name}: Bearer <token>` : `${name}: ${value}`,
  )
  const text = Buffer.isBuffer(body) ? `(base64) ${body.toString('base64')}` : (body ?? '')
  return [
    `> ${method} ${path}`,
    ...shown.map((line) => `> ${line}`),
    ...(chunks ? [`> (in chunks of ${chunks.join(', ')})`] : []),
    `> ${text.slice(0, most)}`,
  ].join('\n')
}

function toldAnswer(answer: Answer | string): string {
  if (typeof answer === 'string') return `< ${answer}`
  const named = ['etag', 'location', 'idempotent-replayed', 'x-request-id']
  const headers = named.flatMap((name) => {
    const value = answer.headers.get(name)
    return value === undefined ? [] : [`${name}: ${value}`]
  })
  return `< ${answer.status} ${headers.join(', ')}\n< ${answer.text.slice(0, most)}`
}
