import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, truncate } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A mail sink with a ledger of received messages. */
export interface Sink {
  port: number
  pid: number
  /** Messages since the start, or since `empty`. */
  count(): number
  /** Waits for this many messages. Rejects if no message arrives for `silenceMs`. */
  until(count: number, silenceMs: number): Promise<void>
  read(): Promise<Delivery[]>
  empty(): Promise<void>
  /** Delays the acknowledgement of messages to this domain. */
  slowDown(domain: string, ms: number): void
  /** Withholds the acknowledgement of messages to this domain, and releases held messages to any other domain. */
  hold(domain: string): void
  /** Acknowledges all messages. */
  release(): void
  /**
   * The number of held messages, and the number of clients that disconnected before a release. Both are up to 50 ms
   * old.
   */
  held(): Pick<SinkState, 'pending' | 'givenUp'>
  stop(): void
}

/** The state reported by its process. */
export interface SinkState {
  count: number
  pending: number
  givenUp: number
}

/** The commands that its process accepts. With the domain '' no messages are held. */
export type SinkOrder = { slow: { domain: string; ms: number } } | { hold: string }

export interface Delivery {
  /** In ms, by this machine's clock. */
  at: number
  messageId: string
  recipient: string
  returnPath: string
}

/** Long enough for a busy machine. */
const readyMs = 180_000

/** `paceMs` is the delay between receiving and acknowledging a message. */
export async function startSink(ledger: string, paceMs = 0): Promise<Sink> {
  const child = fork(path.join(import.meta.dirname, 'sink-process.ts'), [ledger, String(paceMs)])
  let state: SinkState = { count: 0, pending: 0, givenUp: 0 }
  let emptiedAt = 0
  const signal = AbortSignal.timeout(readyMs)
  const [{ port }] = (await once(child, 'message', { signal })) as [{ port: number }]
  child.on('message', (reported: SinkState) => {
    state = reported
  })
  const order = (what: SinkOrder): void => void child.send(what)
  const count = (): number => state.count - emptiedAt
  return {
    port,
    pid: child.pid ?? 0,
    count,
    async until(wanted, silenceMs) {
      let last = { count: count(), at: performance.now() }
      while (count() < wanted) {
        if (count() !== last.count) last = { count: count(), at: performance.now() }
        if (performance.now() - last.at > silenceMs) {
          throw new Error(
            `The sink has ${count()} of ${wanted} messages, and none arrived for ${silenceMs} ms.`,
          )
        }
        await sleep(20)
      }
    },
    async read() {
      const lines = (await readFile(ledger, 'utf8')).split('\n').filter((line) => line !== '')
      return lines.map((line) => {
        const [at = '', messageId = '', recipient = '', returnPath = ''] = line.split(' ')
        return { at: Number(at), messageId: messageId.replace(/^<|>$/g, ''), recipient, returnPath }
      })
    },
    async empty() {
      // The last lines may not have arrived yet.
      await sleep(100)
      emptiedAt = state.count
      await truncate(ledger)
    },
    slowDown: (domain, ms) => order({ slow: { domain, ms } }),
    hold: (domain) => order({ hold: domain }),
    release: () => order({ hold: '' }),
    held: () => state,
    stop: () => child.disconnect(),
  }
}
