/** Somebody who calls the interface with a token or a key: an administrator's program, a customer's. */
export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a scenario looks into whatever came.
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
