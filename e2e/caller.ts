/**
 * A response from the API. A `Caller` sends requests with a token or an API key, as an administrator's or customer's
 * program would.
 */
export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: each scenario reads a different body.
  body: any
}

export class Caller {
  readonly #url: string
  readonly #secret: string

  constructor(url: string, secret: string) {
    this.#url = url
    this.#secret = secret
  }

  async #request(method: string, path: string, body?: object): Promise<Answer> {
    const response = await fetch(new URL(`/v1${path}`, this.#url), {
      method,
      headers: {
        authorization: `Bearer ${this.#secret}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
  }

  get = (path: string) => this.#request('GET', path)
  post = (path: string, body: object) => this.#request('POST', path, body)
  patch = (path: string, body: object) => this.#request('PATCH', path, body)
  delete = (path: string, body?: object) => this.#request('DELETE', path, body)
}
