import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A proxy on one connection that reports each message before it passes and can cut the connection at that moment.
 */
export interface Passing {
  /** The same words for the same thing in every run. */
  what: string
  /** `before`: on its way to whoever is to do it. `after`: it is done, and the answer is on its way back. */
  when: 'before' | 'after'
  /** It changed nothing, as most of what is asked again and again. */
  isVain?: boolean
  /** The statement as it is, where it is one. */
  text?: string
}

/** True: it does not arrive, nor does anything after it. */
export type Watcher = (passing: Passing) => boolean

/** Of one connection: what of these bytes may pass. It tells the watcher what they say. */
export interface Reader {
  there(chunk: Buffer): Buffer
  back(chunk: Buffer): Buffer
}

export interface Tap {
  port: number
  /** Ends what is open, and resolves when the other end has let go of it. */
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
    // A server that goes on speaking to somebody who is gone.
    this.#far.resume()
    await this.closed
  }

  /** What came before the end of it has arrived; the rest never will. */
  #pass(to: Socket, bytes: Buffer): void {
    if (bytes.length > 0 && !to.destroyed) to.write(bytes)
  }
}

/** HTTP, one request after another: its first bytes, and the first bytes of its answer. */
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
