import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { cleanUp } from '../harness/cleanup.ts'
import { type SentStatement, StatementReader, splitter, tagOf, writesOf } from './postgres-wire.ts'

/**
 * A proxy between a process and PostgreSQL. It parses enough of the protocol (version 3) to detect every statement
 * that commits a change, and can disconnect the process at that moment.
 */
export interface PostgresProxy {
  /** The URL of the same database through the proxy. */
  urlOf(databaseUrl: string): string
  hooks: CommitHooks
  /** Disconnects the process. Resolves when the server has closed all of its sessions. */
  cut(): Promise<void>
}

export interface CommitHooks {
  /** Called before the statement reaches the server. Returning true drops it. */
  onStatement?: (commit: Commit) => boolean
  /** Called after the server has executed it. Returning true drops the response. */
  onDone?: (commit: Commit) => boolean
}

/** A COMMIT, or a single writing statement outside a transaction. */
export interface Commit {
  /** The writes in the transaction, for example `insert control.audit, update control.domains`. */
  what: string
  /** The last statement and its parameters. */
  text: string
  values: string[]
  /** The command tag, for example `UPDATE 1`; empty before completion. */
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

/** The response to a request that loses its database connection at this point in a commit. */
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
  readonly #statements = new StatementReader()
  #writes: string[] = []
  /** The statements without a response yet; undefined for those that commit nothing. */
  readonly #pending: (Commit | undefined)[] = []

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

  /** Returns false to drop this message and all that follow. */
  #ask(type: string, body: Buffer): boolean {
    if (this.#isCut) return false
    const statement = this.#statements.read(type, body)
    if (!statement) return true
    const commit = this.#commitOf(statement)
    this.#pending.push(commit)
    if (commit && this.#hooks.onStatement?.(commit)) this.#isCut = true
    return !this.#isCut
  }

  #commitOf({ text, values, opensTransaction, isInTransaction }: SentStatement): Commit | undefined {
    const writes = writesOf(text)
    const commit = (all: string[]): Commit | undefined =>
      all.length > 0 ? { what: [...new Set(all)].sort().join(', '), text, values, tag: '' } : undefined
    if (!isInTransaction && !opensTransaction) return commit(writes)
    if (/^\s*commit\b/i.test(text)) return commit(this.#writes)
    this.#writes = opensTransaction ? writes : [...this.#writes, ...writes]
    return undefined
  }

  #answer(type: string, body: Buffer): boolean {
    if (this.#isCut) return false
    const [first] = this.#pending
    if (type === 'C' && first) first.tag = tagOf(body)
    if (type !== 'Z') return true
    const done = this.#pending.shift()
    if (done && this.#hooks.onDone?.(done)) this.#isCut = true
    return !this.#isCut
  }
}
