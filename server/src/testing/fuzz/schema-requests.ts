import { Chance } from '../harness/random.ts'
import type { Caller, FuzzContext } from './caller.ts'
import type { DocumentedOperation } from './document.ts'
import { absentId, seedOf, weighted } from './draw.ts'
import { encodePlain, type RequestContent } from './encode.ts'
import type { Request } from './http.ts'
import { hostileTexts } from './texts.ts'
import { object, validValue } from './valid-values.ts'
import { withLiterals, wrongValues } from './wrong-values.ts'

/**
 * Requests generated only from the document, for every operation, on resources outside the model. Their outcome is
 * not predicted: any documented response is correct.
 */
export class SchemaRequests {
  readonly #context: FuzzContext
  /** Ids, keyed by the path segment before the parameter. */
  readonly #ids = new Map<string, (number | string)[]>()
  readonly #cookie: string
  /** The service runs one verification at a time. */
  #verification: Promise<unknown> = Promise.resolve()

  constructor(context: FuzzContext, cookie: string) {
    this.#context = context
    this.#cookie = cookie
  }

  addIds(noun: string, ...ids: (number | string)[]): void {
    this.#ids.set(noun, [...(this.#ids.get(noun) ?? []), ...ids].slice(-maxIds))
  }

  /** The same seed produces the same requests. */
  async run(caller: Caller, seed: number, requests: number): Promise<void> {
    for (let n = 0; n < requests; n++) await this.#one(caller, new Chance(seedOf(seed, n)))
  }

  async #one(caller: Caller, chance: Chance): Promise<void> {
    const operation = weighted(
      chance,
      this.#context.document.operations.map((one) => [weightOf(one), one] as const),
    )
    const request = this.#request(chance, operation)
    const send = () => caller.send(operation, request)
    const response = operation.id === 'audit.verify' ? await this.#alone(send) : await send()
    const made = response.status === 201 ? response.headers.get('location')?.split('/') : undefined
    if (made) this.addIds(made.at(-2) ?? '', Number(made.at(-1)))
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#verification.then(work)
    this.#verification = mine.catch(() => {})
    return mine
  }

  #request(chance: Chance, operation: DocumentedOperation): Request {
    const request = encodePlain(operation, this.#context.token(), {
      params: this.#params(chance, operation),
      query: this.#query(chance, operation),
      headers: headersOf(chance, operation),
      body: this.#body(chance, operation),
    })
    if (operation.caller === 'token') return chance.happens(0.05) ? withOddHeader(chance, request) : request
    const headers = request.headers.filter(([name]) => name !== 'authorization')
    // Signing out would revoke the session that all callers share.
    const isSignedIn =
      operation.caller === 'session' && operation.id !== 'auth.sign-out' && chance.happens(0.7)
    const cookie = isSignedIn ? this.#cookie : chance.pick(['', 'a=b', 'postern.session_token=x.y', ';;=;'])
    return { ...request, headers: [...headers, ['cookie', cookie]] }
  }

  #idFor(chance: Chance, noun: string): number | string {
    const known = this.#ids.get(noun) ?? []
    return known.length > 0 && !chance.happens(0.1) ? chance.pick(known) : absentId(chance)
  }

  #params(chance: Chance, { path }: DocumentedOperation): RequestContent['params'] {
    const names = [...path.matchAll(/([\w-]+)\/\{(\w+)\}/g)]
    return Object.fromEntries(names.map(([, noun = '', name = '']) => [name, this.#idFor(chance, noun)]))
  }

  #query(chance: Chance, { id, parameters }: DocumentedOperation): Record<string, string> {
    // These two operations would take too long over all projects.
    const always = id === 'audit.verify' || id === 'audit.export' ? ['project_id'] : []
    const chosen = parameters
      .filter((one) => one.in === 'query')
      .filter(({ name }) => always.includes(name) || chance.happens(name === 'dry_run' ? 0.2 : 0.3))
    return Object.fromEntries(
      chosen.map(({ name, schema }) => {
        if (name === 'project_id') return [name, String(this.#idFor(chance, 'projects') || 1)]
        if (chance.happens(0.15) && schema['type'] === 'string') return [name, chance.pick(hostileTexts)]
        return [name, String(validValue(chance, schema, name, () => undefined))]
      }),
    )
  }

  #body(chance: Chance, { body, method }: DocumentedOperation): RequestContent['body'] {
    if (!body) return undefined
    // DELETE also accepts a missing body.
    if (method === 'DELETE' && chance.happens(0.1)) return undefined
    const made = object(chance, body, (field) => {
      const noun = nounOf(field)
      return noun === undefined ? undefined : Number(this.#idFor(chance, noun))
    })
    const properties = Object.entries((body['properties'] ?? {}) as Record<string, { type?: string }>)
    if (!chance.happens(0.3) || properties.length === 0) return made
    const [name, schema] = chance.pick(properties)
    return JSON.parse(withLiterals({ ...made, [name]: chance.pick(wrongValues(schema)) }))
  }
}

const maxIds = 40

/** The kind of resource that a field refers to. */
function nounOf(field: string): string | undefined {
  const nouns: Record<string, string> = {
    user_id: 'users',
    plan_id: 'plans',
    admin_plan_id: 'plans',
    domain_id: 'domains',
    endpoint_id: 'endpoints',
    route_id: 'routing',
  }
  return nouns[field]
}

/** Sign-in operations get a low weight, because hashing a password takes a tenth of a second. */
const weightOf = ({ id, caller }: DocumentedOperation): number =>
  id.startsWith('health.') || id.startsWith('audit.') ? 3 : caller === 'token' ? 10 : 1

function headersOf(chance: Chance, { parameters }: DocumentedOperation): [string, string][] {
  return parameters
    .filter((one) => one.in === 'header' && chance.happens(0.3))
    .map(({ name }) => [
      name.toLowerCase(),
      name === 'If-Match'
        ? chance.pick(['*', '"1"', '"2", "3"', 'W/"1"', '"\u00ff"', '1'])
        : chance.pick([`schema-${chance.below(50)}`, 'k', 'a b', "'; --", 'x'.repeat(255)]),
    ])
}

function withOddHeader(chance: Chance, request: Request): Request {
  const header = chance.pick<readonly [string, string]>([
    ['x-request-id', 'of-my-own'],
    ['x-forwarded-for', '10.0.0.1'],
    ['x-http-method-override', 'DELETE'],
    ['origin', 'https://evil.example'],
    ['accept', 'text/html'],
    ['accept-encoding', 'br, gzip'],
    ['range', 'bytes=0-1'],
    ['if-none-match', '*'],
    ['if-modified-since', 'Sun, 15 Nov 2026 06:18:46 GMT'],
    ['cookie', 'a=b'],
    ['user-agent', '\u0001\u00ff'.slice(1)],
    ['connection', 'close'],
    ['content-encoding', 'identity'],
  ])
  return { ...request, headers: [...request.headers, header] }
}
