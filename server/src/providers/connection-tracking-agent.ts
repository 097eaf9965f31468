import { Agent, type AgentOptions } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/**
 * Node's agents, watched: of an error that ended a connection it can be told whether the connection ever stood. Before
 * it does (the name was not found, nobody listened, the certificate was wrong), nothing of a request can have reached
 * the other side.
 */
export class Connections {
  readonly http: Agent
  readonly https: TlsAgent
  readonly #neverStood = new WeakSet<object>()

  constructor(options: AgentOptions & { connectMs: number }) {
    const watch = (socket: Duplex | null | undefined, ready: 'connect' | 'secureConnect') => {
      if (socket) this.#watch(socket as Socket, ready, options.connectMs)
      return socket
    }
    this.http = new (class extends Agent {
      override createConnection(...args: Parameters<Agent['createConnection']>) {
        return watch(super.createConnection(...args), 'connect')
      }
    })(options)
    this.https = new (class extends TlsAgent {
      override createConnection(...args: Parameters<TlsAgent['createConnection']>) {
        return watch(super.createConnection(...args), 'secureConnect')
      }
    })(options)
  }

  /** Nothing was sent over the connection that this is the end of. */
  neverStood(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#neverStood.has(error)
  }

  #watch(socket: Socket, ready: 'connect' | 'secureConnect', connectMs: number): void {
    const late = setTimeout(() => {
      socket.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }))
    }, connectMs)
    const refused = (error: Error) => this.#neverStood.add(error)
    socket.prependListener('error', refused)
    socket.once(ready, () => {
      clearTimeout(late)
      socket.off('error', refused)
    })
    socket.once('close', () => clearTimeout(late))
  }
}
