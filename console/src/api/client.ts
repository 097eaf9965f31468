import { patiently, Refusal, refusalOf } from './answer.ts'
import { signIns } from './gate.ts'
import { type Operations, operations, type Preview } from './operations.gen.ts'
import { drawToken, forgetToken } from './token.ts'

export type OperationId = keyof Operations
export type PathOf<Id extends OperationId> = Operations[Id]['path']
export type QueryOf<Id extends OperationId> = Operations[Id]['query']
export type BodyOf<Id extends OperationId> = Operations[Id]['body']
export type AnswerOf<Id extends OperationId> = Operations[Id]['answer']

/** Every administrative mutation, and nothing else, can be previewed. */
export type MutationId = {
  [Id in OperationId]: Operations[Id]['hasPreview'] extends true ? Id : never
}[OperationId]

export interface Request<Id extends OperationId> {
  path?: PathOf<Id>
  query?: QueryOf<Id>
  body?: BodyOf<Id>
  /** The ETag that the change is based on. */
  version?: string | undefined
  /** Of a POST: whoever presses twice, or repeats after a lost answer, acts once. */
  idempotencyKey?: string
  signal?: AbortSignal
  /** How long to wait for what takes longer than anything else. */
  patienceMs?: number
}

export interface Answer<T> {
  data: T
  version: string | undefined
}

export async function call<Id extends OperationId>(id: Id, request: Request<Id> = {}): Promise<AnswerOf<Id>> {
  return (await callForVersion(id, request)).data
}

/** As `call`, with the ETag for a change that follows. */
export function callForVersion<Id extends OperationId>(
  id: Id,
  request: Request<Id> = {},
): Promise<Answer<AnswerOf<Id>>> {
  return ask(id, request, async (response) => {
    const text = await response.text()
    return {
      data: (text === '' ? undefined : JSON.parse(text)) as AnswerOf<Id>,
      version: response.headers.get('etag') ?? undefined,
    }
  })
}

/** What an act would change. Nothing is done. */
export function preview<Id extends MutationId>(id: Id, request: Request<Id>): Promise<Preview> {
  const { idempotencyKey: _, ...rest } = request
  const asked = { ...rest, query: { ...rest.query, dry_run: true } as QueryOf<Id> }
  return ask(id, asked, (response) => response.json())
}

/** The answer as it comes in, for what is too long to wait for: an export. Patience ends where the answer begins. */
export const send = <Id extends OperationId>(id: Id, request: Request<Id>): Promise<Response> =>
  ask(id, request, async (response) => response)

/**
 * Patience covers the answer to its last byte, and begins when there is a token: to sign in may take as long as it
 * takes. An act that meets the end of a session is not sent when somebody has signed in again, perhaps hours later:
 * they are asked to look at it, and to press once more.
 */
async function ask<Id extends OperationId, T>(
  id: Id,
  request: Request<Id>,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const isOwnSession = id.startsWith('auth.')
  const isAct = operations[id][0] !== 'GET' && !isDryRun(request)
  const signInsBefore = signIns()
  for (let isSecond = false; ; isSecond = true) {
    const token = isOwnSession ? undefined : await drawToken()
    if (isAct && signIns() !== signInsBefore) {
      const message = 'Your session had ended, so this was not done. Look at it again, and press once more.'
      throw new Refusal(401, 'signed_out', message)
    }
    const answer = await patiently(async (signal) => {
      const response = await fetchOnce(id, request, token, signal)
      if (response.ok) return { value: await read(response) }
      const refusal = await refusalOf(response)
      if (refusal.status !== 401 || isOwnSession || isSecond) throw refusal
      return undefined
    }, request)
    if (answer) return answer.value
    forgetToken(token)
  }
}

const isDryRun = ({ query }: { query?: object }): boolean =>
  (query as { dry_run?: boolean })?.dry_run === true

function fetchOnce<Id extends OperationId>(
  id: Id,
  { path, query, body, version, idempotencyKey }: Request<Id>,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const [method, template] = operations[id]
  const headers: Record<string, string> = {}
  if (token) headers['authorization'] = `Bearer ${token}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (version) headers['if-match'] = version
  if (idempotencyKey) headers['idempotency-key'] = idempotencyKey
  return fetch(addressOf(template, path ?? {}, query ?? {}), {
    method,
    headers,
    signal,
    cache: 'no-store',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

function addressOf(template: string, path: Record<string, unknown>, query: Record<string, unknown>): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])))
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]))
  return given.length > 0 ? `${filled}?${search}` : filled
}
