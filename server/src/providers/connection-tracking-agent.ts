import { Agent, type AgentOptions } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/**
 * HTTP agents that record whether a failed connection was ever established. If it was not (the name did not
 * resolve, the connection was refused, the certificate was invalid), no part of a request can have reached
 * the server.
 */
export class Connections {
  readonly http: Agent
  readonly https: TlsAgent
  readonly #neverConnected = new WeakSet<object>()

  constructor(options: AgentOptions & { connectMs: number }) {
    const track = (socket: Duplex | null | undefined, ready: 'connect' | 'secureConnect') => {
      if (socket) this.#track(socket as Socket, ready, options.connectMs)
      return socket
    }
    this.http = new (class extends Agent {
      override createConnection(...args: Parameters<Agent['createConnection']>) {
        return track(super.createConnection(...args), 'connect')
      }
    })(options)
    this.https = new (class extends TlsAgent {
      override createConnection(...args: Parameters<TlsAgent['createConnection']>) {
        return track(super.createConnection(...args), 'secureConnect')
      }
    })(options)
  }

  /** Whether the error ended a connection before anything was sent over it. */
  wasNeverConnected(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#neverConnected.has(error)
  }

  #track(socket: Socket, ready: 'connect' | 'secureConnect', connectMs: number): void {
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error('connection timed out'), { code: 'ETIMEDOUT' }))
    }, connectMs)
    const onError = (error: Error) => this.#neverConnected.add(error)
    socket.prependListener('error', onError)
    socket.once(ready, () => {
      clearTimeout(timer)
      socket.off('error', onError)
    })
    socket.once('close', () => clearTimeout(timer))
  }
}
