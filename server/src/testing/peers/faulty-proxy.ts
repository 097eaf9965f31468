import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanUp } from '../harness/cleanup.ts'
import { resetSocket } from './reset-socket.ts'

/** A TCP proxy to a local port with configurable faults. All settings can change at any time. */
export class FaultyProxy {
  readonly port: number
  /** The delay of every reply. */
  latencyMs = 0
  /** Limit per direction. */
  bytesPerSecond = Number.POSITIVE_INFINITY
  /** Accepts connections but forwards nothing in either direction. */
  isSilent = false
  readonly #server: Server
  readonly #open: Set<Socket>
  readonly #closing = new AbortController()

  private constructor(server: Server, port: number, open: Set<Socket>) {
    this.#server = server
    this.port = port
    this.#open = open
  }

  /** Closed after the file's tests. */
  static async open(to: number): Promise<FaultyProxy> {
    const proxy = await FaultyProxy.keep(to)
    cleanUp(() => proxy.close())
    return proxy
  }

  /** The caller must close it. */
  static async keep(to: number): Promise<FaultyProxy> {
    const open = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      for (const socket of [near, far]) {
        open.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => open.delete(socket))
      }
      void proxy.#forward(near, far, () => 0)
      void proxy.#forward(far, near, () => proxy.latencyMs)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const proxy = new FaultyProxy(server, address.port, open)
    return proxy
  }

  /** The number of open sockets on both sides of the proxy. */
  get connections(): number {
    return this.#open.size
  }

  /** Resets all open connections. New ones are accepted. */
  reset(): void {
    for (const socket of this.#open) resetSocket(socket)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const socket of this.#open) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #forward(from: Socket, to: Socket, latencyMs: () => number): Promise<void> {
    const pause = (ms: number) => sleep(ms, undefined, { signal: this.#closing.signal })
    try {
      for await (const chunk of from) {
        await pause(latencyMs())
        for (let rest: Buffer = chunk; rest.length > 0 && !to.destroyed; ) {
          while (this.isSilent && !to.destroyed) await pause(20)
          const piece = rest.subarray(
            0,
            Math.max(1, Math.min(rest.length, this.bytesPerSecond * tickSeconds)),
          )
          await new Promise((resolve) => to.write(piece, resolve))
          await pause((piece.length / this.bytesPerSecond) * 1000)
          rest = rest.subarray(piece.length)
        }
      }
      to.end()
    } catch {
      // The connection was aborted.
      to.destroy()
    }
  }
}

/** The size of one write when the bandwidth is limited. */
const tickSeconds = 0.02
