import { ApiError, apiErrorOf, withTimeout } from './api-error.ts'
import { type OperationEntry, type Operations, signinOperations } from './operations.gen.ts'
import { signInCount } from './sign-in-gate.ts'
import { discardToken, getToken, signInAgain } from './token.ts'

export type OperationId = keyof Operations

const operations: Record<string, OperationEntry> = { ...signinOperations }

/** Called once by each entrance, before its first request. Requests of the other entrance are not in its files. */
export function addOperations(ofEntrance: Record<string, OperationEntry>): void {
  Object.assign(operations, ofEntrance)
}

function entryOf(id: OperationId): OperationEntry {
  const entry = operations[id]
  if (!entry) throw new Error(`${id} is not an operation of this entrance.`)
  return entry
}

export type PathOf<Id extends OperationId> = Operations[Id]['path']
export type QueryOf<Id extends OperationId> = Operations[Id]['query']
export type BodyOf<Id extends OperationId> = Operations[Id]['body']
export type AnswerOf<Id extends OperationId> = Operations[Id]['answer']

export interface Request<Id extends OperationId> {
  path?: PathOf<Id>
  query?: QueryOf<Id>
  body?: BodyOf<Id>
  /** The ETag that the change is based on. */
  version?: string | undefined
  /** For POST: makes a retry idempotent, for example after a lost response. */
  idempotencyKey?: string
  signal?: AbortSignal
  /** For operations that take longer than the default timeout. */
  timeoutMs?: number
}

export interface Answer<T> {
  data: T
  version: string | undefined
}

export async function call<Id extends OperationId>(id: Id, request: Request<Id> = {}): Promise<AnswerOf<Id>> {
  return (await callForVersion(id, request)).data
}

/** Like `call`, but also returns the ETag for a subsequent change. */
export function callForVersion<Id extends OperationId>(
  id: Id,
  request: Request<Id> = {},
): Promise<Answer<AnswerOf<Id>>> {
  return perform(id, request, async (response) => {
    const text = await response.text()
    return {
      data: (text === '' ? undefined : JSON.parse(text)) as AnswerOf<Id>,
      version: response.headers.get('etag') ?? undefined,
    }
  })
}

/** The response as a stream, for exports. The timeout applies until the response starts. */
export const send = <Id extends OperationId>(id: Id, request: Request<Id>): Promise<Response> =>
  perform(id, request, async (response) => response)

/**
 * The timeout covers the whole response and starts once a token is available, because signing in can take any length of
 * time. If the session has ended, the user may sign in again hours later. The mutation is then not sent automatically:
 * the user is asked to review and resubmit it.
 */
async function perform<Id extends OperationId, T>(
  id: Id,
  request: Request<Id>,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  // These use the session's cookie, or are public.
  const isOwnSession = Object.hasOwn(signinOperations, id)
  const [method, , kind] = entryOf(id)
  const isWrite = method !== 'GET' && kind !== 'read' && !isDryRun(request)
  const signInsBefore = signInCount()
  for (let isSecond = false; ; isSecond = true) {
    const token = isOwnSession ? undefined : await getToken()
    if (isWrite && signInCount() !== signInsBefore) {
      const cause = isSecond ? 'You have signed in again.' : 'Your session has expired.'
      const message = `${cause} Nothing was changed. Review the change and submit it again.`
      throw new ApiError(401, 'signed_out', message)
    }
    const answer = await withTimeout(
      async (signal) => {
        const response = await fetchOnce(id, request, token, signal)
        if (response.ok) return { value: await read(response) }
        const error = await apiErrorOf(response)
        if (error.status !== 401 || isOwnSession || (isSecond && !isWrite)) throw error
        return undefined
      },
      { ...request, isWrite },
    )
    if (answer) return answer.value
    discardToken(token)
    // The server also rejects a new token if the change requires a recent second factor.
    if (isSecond) await signInAgain()
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
  const [method, template] = entryOf(id)
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
