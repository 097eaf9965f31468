import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanUp } from '../harness/cleanup.ts'
import { resetSocket } from './reset-socket.ts'

/** A line to a port on this machine, as good as any until it is made worse. All of it may be changed at any time. */
export class FaultyProxy {
  readonly port: number
  /** Every answer takes that long. */
  latencyMs = 0
  /** In each direction. */
  bytesPerSecond = Number.POSITIVE_INFINITY
  /** Whoever calls is let in and hears nothing; who is in the middle of something hears no more of it. */
  isSilent = false
  readonly #server: Server
  readonly #open: Set<Socket>
  readonly #closing = new AbortController()

  private constructor(server: Server, port: number, open: Set<Socket>) {
    this.#server = server
    this.port = port
    this.#open = open
  }

  /** For a test file: gone when its tests are over. */
  static async open(to: number): Promise<FaultyProxy> {
    const line = await FaultyProxy.keep(to)
    cleanUp(() => line.close())
    return line
  }

  /** For whoever closes it in the end. */
  static async keep(to: number): Promise<FaultyProxy> {
    const open = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      for (const socket of [near, far]) {
        open.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => open.delete(socket))
      }
      void line.#carry(near, far, () => 0)
      void line.#carry(far, near, () => line.latencyMs)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const line = new FaultyProxy(server, address.port, open)
    return line
  }

  /** How many sockets are open, on both sides of the line. */
  get connections(): number {
    return this.#open.size
  }

  /** Whoever is on the line is thrown out; whoever calls again is not. */
  reset(): void {
    for (const socket of this.#open) resetSocket(socket)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const socket of this.#open) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #carry(from: Socket, to: Socket, latencyMs: () => number): Promise<void> {
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
      // It broke off.
      to.destroy()
    }
  }
}

/** What a slow line passes on at once. */
const tickSeconds = 0.02
