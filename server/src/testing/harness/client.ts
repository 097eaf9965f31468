import type { Rights } from '../../core/control/users/wire.ts'
import type { TestApi } from './api.ts'

/** An API client with an access token. */
export interface Answer {
  status: number
  headers: Headers
  /** The body as received. */
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary response bodies.
  body: any
}

export class Client {
  readonly #url: string
  #token: string
  readonly #base: string

  constructor(url: string, token: string, base = '/v1/admin') {
    this.#url = url
    this.#token = token
    this.#base = base
  }

  /** For tests that take longer than an access token is valid. */
  replaceToken(token: string): void {
    this.#token = token
  }

  get headers(): { authorization: string } {
    return { authorization: `Bearer ${this.#token}` }
  }

  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(new URL(`${this.#base}${path}`, this.#url), {
      method,
      headers: {
        ...this.headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && method !== 'HEAD' ? JSON.parse(text) : null,
    }
  }

  get = (path: string, headers?: Record<string, string>) => this.request('GET', path, undefined, headers)
  post = (path: string, body?: unknown, headers?: Record<string, string>) =>
    this.request('POST', path, body, headers)
  put = (path: string, body?: unknown, headers?: Record<string, string>) =>
    this.request('PUT', path, body, headers)
  patch = (path: string, body?: unknown, headers?: Record<string, string>) =>
    this.request('PATCH', path, body, headers)
  delete = (path: string, body?: unknown, headers?: Record<string, string>) =>
    this.request('DELETE', path, body, headers)
}

/** Creates an administrator, by default with full rights, and returns a client with their access token. */
export async function signedIn(
  api: TestApi,
  rights?: Rights,
): Promise<Client & { userId: number; email: string }> {
  const { email, userId } = await api.grantAdmin(rights)
  return Object.assign(new Client(api.url, await api.tokenOf(email)), { userId, email })
}
