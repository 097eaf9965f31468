import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A proxy on one connection that reports each protocol message before forwarding it and can cut the connection at that
 * point.
 */
export interface Passing {
  /** A name that is the same in every run. */
  what: string
  /**
   * `before`: the request is on its way to the server. `after`: it has been executed, and the response is on its way
   * back.
   */
  when: 'before' | 'after'
  /** Whether the request had no effect, like most polling statements. */
  isVain?: boolean
  /** The text of a statement. */
  text?: string
}

/** Returns true if this message and all later ones must not arrive. */
export type Watcher = (passing: Passing) => boolean

/** Parses one connection, calls the watcher, and returns the bytes to forward. */
export interface Reader {
  there(chunk: Buffer): Buffer
  back(chunk: Buffer): Buffer
}

export interface Tap {
  port: number
  /** Closes all connections, and resolves when the other end has closed them. */
  cut(): Promise<void>
  close(): Promise<void>
}

export async function openTap(
  targetPort: number,
  watch: Watcher,
  read: (watch: Watcher) => Reader,
): Promise<Tap> {
  const open = new Set<Connection>()
  const server = createServer({ noDelay: true }, (near) => {
    const connection = new Connection(near, targetPort, watch, read)
    open.add(connection)
    void connection.closed.then(() => open.delete(connection))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = async (): Promise<void> => {
    await Promise.all([...open].map((connection) => connection.cut()))
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    async close() {
      server.close()
      await cut()
    },
  }
}

class Connection {
  readonly closed: Promise<unknown>
  readonly #near: Socket
  readonly #far: Socket
  #isCut = false

  constructor(near: Socket, targetPort: number, watch: Watcher, read: (watch: Watcher) => Reader) {
    this.#near = near
    this.#far = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    this.closed = new Promise((resolve) => this.#far.once('close', resolve))
    const reader = read((passing) => {
      this.#isCut ||= watch(passing)
      return this.#isCut
    })
    near.on('data', (chunk) => this.#pass(this.#far, reader.there(chunk)))
    this.#far.on('data', (chunk) => this.#pass(near, reader.back(chunk)))
    for (const socket of [near, this.#far]) socket.on('error', () => {})
    near.on('close', () => this.#far.end())
    this.#far.on('close', () => near.destroy())
  }

  async cut(): Promise<void> {
    this.#isCut = true
    this.#near.destroy()
    this.#far.end()
    // Discards data that the server still sends.
    this.#far.resume()
    await this.closed
  }

  /** Bytes before the cut arrive; later ones do not. */
  #pass(to: Socket, bytes: Buffer): void {
    if (bytes.length > 0 && !to.destroyed) to.write(bytes)
  }
}

/** HTTP with sequential requests: the first bytes of each request and of its response. */
export function readHttp(watch: Watcher): Reader {
  let asked: string | undefined
  let isOver = false
  const pass = (passing: Passing, chunk: Buffer): Buffer => {
    isOver ||= watch(passing)
    return isOver ? Buffer.alloc(0) : chunk
  }
  return {
    there(chunk) {
      if (isOver) return Buffer.alloc(0)
      if (asked !== undefined) return chunk
      const [line = ''] = chunk.toString('latin1', 0, 200).split('\r\n')
      asked = line.replace(/ HTTP\/.*/, '').replace(/[0-9a-f]{8}[0-9a-f-]{24,28}/, '{id}')
      return pass({ what: asked, when: 'before' }, chunk)
    },
    back(chunk) {
      if (isOver) return Buffer.alloc(0)
      if (asked === undefined) return chunk
      const what = asked
      asked = undefined
      return pass({ what, when: 'after' }, chunk)
    },
  }
}
