import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, truncate } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Where mail ends up, and what it has written down. */
export interface Sink {
  port: number
  pid: number
  /** Mails since the start, or since `empty`. */
  count(): number
  /** Waits until there are so many; rejects when for so long there was no other. */
  until(count: number, silenceMs: number): Promise<void>
  read(): Promise<Delivery[]>
  empty(): Promise<void>
  /** From now on it delays the acknowledgement of mail to this domain. */
  slowDown(domain: string, ms: number): void
  /** From now on it acknowledges no mail to this domain; held mail of another domain is released. */
  hold(domain: string): void
  /** All mail is acknowledged. */
  release(): void
  /** Mails that wait to be acknowledged, and how many clients went away instead. Up to 50 ms old. */
  held(): Pick<SinkState, 'pending' | 'givenUp'>
  stop(): void
}

/** Messages from its process. */
export interface SinkState {
  count: number
  pending: number
  givenUp: number
}

/** The commands of its process. With the domain '' nothing is held. */
export type SinkOrder = { slow: { domain: string; ms: number } } | { hold: string }

export interface Delivery {
  /** By the clock of this machine, in ms. */
  at: number
  messageId: string
  recipient: string
  returnPath: string
}

/** On a machine that does much else. */
const readyMs = 180_000

/** `paceMs`: how long it takes from having a mail to saying so. */
export async function startSink(ledger: string, paceMs = 0): Promise<Sink> {
  const child = fork(path.join(import.meta.dirname, 'sink-process.ts'), [ledger, String(paceMs)])
  let state: SinkState = { count: 0, pending: 0, givenUp: 0 }
  let emptiedAt = 0
  const signal = AbortSignal.timeout(readyMs)
  const [{ port }] = (await once(child, 'message', { signal })) as [{ port: number }]
  child.on('message', (told: SinkState) => {
    state = told
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
            `The sink has ${count()} mails of ${wanted}, and nothing arrived for ${silenceMs} ms.`,
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
