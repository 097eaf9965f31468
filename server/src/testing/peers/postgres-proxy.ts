import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { opensTransaction, splitter, stringsOf, valuesOf, writesOf } from './postgres-wire.ts'

/**
 * Stands between a process and PostgreSQL, understands as much of the protocol (version 3) as is needed to see every
 * statement that makes something lasting, and can cut the process off at just that moment.
 */
export interface PostgresProxy {
  /** The same database, reached through here. */
  urlOf(databaseUrl: string): string
  hooks: CommitHooks
  /** Ends when the server has let go of everything that the process had open. */
  cut(): Promise<void>
}

export interface CommitHooks {
  /** The server has not heard of it yet; true: it never will. */
  onStatement?: (commit: Commit) => boolean
  /** It is done; true: nobody will be told. */
  onDone?: (commit: Commit) => boolean
}

/** A COMMIT, or a statement that writes and is a transaction by itself. */
export interface Commit {
  /** What is written by it, such as `insert control.audit, update control.domains`. */
  what: string
  /** The last statement, and its parameters. */
  text: string
  values: string[]
  /** What the server says of it, such as `UPDATE 1`; empty before it is done. */
  tag: string
}

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl)
  const hooks: CommitHooks = {}
  const open = new Set<Connection>()
  const server = createServer((client) => {
    const connection = new Connection(client, Number(target.port), target.hostname, hooks)
    open.add(connection)
    void connection.closed.then(() => open.delete(connection))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = async () => {
    await Promise.all([...open].map((connection) => connection.cut()))
  }
  cleanUp(async () => {
    await cut()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    urlOf(url) {
      const through = new URL(url)
      through.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
      return through.href
    },
    hooks,
    cut,
  }
}

/** The answer to a request whose connection to the database is lost at that moment of a commit. */
export async function losingConnection<T>(
  { hooks, cut }: PostgresProxy,
  moment: keyof CommitHooks,
  request: () => Promise<T>,
): Promise<T> {
  const reached = Promise.withResolvers<void>()
  hooks[moment] = () => {
    reached.resolve()
    return true
  }
  try {
    const answer = request()
    await Promise.race([reached.promise, answer])
    delete hooks[moment]
    await cut()
    return await answer
  } finally {
    delete hooks[moment]
  }
}

class Connection {
  readonly closed: Promise<unknown>
  readonly #client: Socket
  readonly #server: Socket
  readonly #hooks: CommitHooks
  #isCut = false
  /** What the last answer of the server said: no transaction, one that is open, one that failed. */
  #status: 'I' | 'T' | 'E' = 'I'
  #writes: string[] = []
  #text = ''
  #values: string[] = []
  #pending: Commit | undefined

  constructor(client: Socket, port: number, host: string, hooks: CommitHooks) {
    this.#client = client
    this.#server = connect(port, host)
    this.#hooks = hooks
    this.closed = once(this.#server, 'close')
    const toServer = splitter((type, body) => this.#ask(type, body), { hasStartup: true })
    const toClient = splitter((type, body) => this.#answer(type, body), { hasStartup: false })
    client.on('data', (chunk) => this.#pass(this.#server, toServer(chunk)))
    this.#server.on('data', (chunk) => this.#pass(client, toClient(chunk)))
    for (const socket of [client, this.#server]) socket.on('error', () => {})
    client.on('close', () => this.#server.end())
    this.#server.on('close', () => client.destroy())
  }

  async cut(): Promise<void> {
    this.#isCut = true
    this.#client.destroy()
    this.#server.end()
    await this.closed
  }

  #pass(to: Socket, bytes: Buffer): void {
    if (!this.#isCut && bytes.length > 0) to.write(bytes)
  }

  /** False when it is not to be passed on, nor anything after it. */
  #ask(type: string, body: Buffer): boolean {
    if (this.#isCut) return false
    if (type === 'P') this.#text = stringsOf(body)[1] ?? ''
    if (type === 'B') this.#values = valuesOf(body)
    if (type === 'Q') [this.#text, this.#values] = [stringsOf(body)[0] ?? '', []]
    if (type !== 'Q' && type !== 'E') return true
    this.#pending = this.#commitOf(this.#text)
    if (this.#pending && this.#hooks.onStatement?.(this.#pending)) this.#isCut = true
    return !this.#isCut
  }

  #commitOf(text: string): Commit | undefined {
    const writes = writesOf(text)
    const commit = (all: string[]): Commit => ({
      what: [...new Set(all)].sort().join(', '),
      text,
      values: this.#values,
      tag: '',
    })
    if (this.#status === 'I' && !opensTransaction(text)) return writes.length > 0 ? commit(writes) : undefined
    if (/^\s*commit\b/i.test(text)) return this.#writes.length > 0 ? commit(this.#writes) : undefined
    this.#writes = this.#status === 'I' ? writes : [...this.#writes, ...writes]
    return undefined
  }

  #answer(type: string, body: Buffer): boolean {
    if (this.#isCut) return false
    if (type === 'C' && this.#pending) this.#pending.tag = stringsOf(body)[0] ?? ''
    if (type !== 'Z') return true
    this.#status = body.toString('latin1') as 'I' | 'T' | 'E'
    const done = this.#pending
    this.#pending = undefined
    if (done && this.#hooks.onDone?.(done)) this.#isCut = true
    return !this.#isCut
  }
}
