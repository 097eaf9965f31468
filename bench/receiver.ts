import { fork } from 'node:child_process'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeCertificate } from '../server/src/testing/peers/certificate.ts'

/** A webhook receiver that records arrivals. */
export interface Receiver {
  port: number
  pid: number
  /** The CA that issued its certificate. */
  caFile: string
  count(): number
  /** Waits for this many events. Rejects if no event arrives for `silenceMs`. */
  until(count: number, silenceMs: number): Promise<void>
  read(): Promise<Arrivals>
  empty(): Promise<void>
  stop(): void
}

export interface Arrivals {
  /** Arrival times in ms by this machine's clock, in the order of `ids`. */
  times: number[]
  ids: string[]
  /** The body of the first event. */
  body: string
}

/** Creates a certificate in this directory, unless one is passed in. */
export async function startReceiver(
  directory: string,
  files = writeCertificate(directory).files,
): Promise<Receiver> {
  const child = fork(path.join(import.meta.dirname, 'receiver-process.ts'), [files.certificate, files.key])
  type Word = { port?: number; count?: number; isEmpty?: boolean } & Partial<Arrivals>
  let count = 0
  const listeners = new Set<(word: Word) => void>()
  child.on('message', (word: Word) => {
    count = word.count ?? count
    for (const listener of listeners) listener(word)
  })
  const heard = (isIt: (word: Word) => boolean): Promise<Word> =>
    new Promise((resolve) => {
      const listener = (word: Word) => {
        if (!isIt(word)) return
        listeners.delete(listener)
        resolve(word)
      }
      listeners.add(listener)
    })
  const { port = 0 } = await heard((word) => word.port !== undefined)
  return {
    port,
    pid: child.pid ?? 0,
    caFile: files.certificate,
    count: () => count,
    async until(wanted, silenceMs) {
      for (let last = { count, at: performance.now() }; count < wanted; await sleep(20)) {
        if (count !== last.count) last = { count, at: performance.now() }
        if (performance.now() - last.at > silenceMs) {
          throw new Error(
            `The receiver has ${count} of ${wanted} events, and none arrived for ${silenceMs} ms.`,
          )
        }
      }
    },
    async read() {
      const answer = heard(({ times }) => times !== undefined)
      child.send('read')
      const { times = [], ids = [], body = '' } = await answer
      return { times, ids, body }
    },
    async empty() {
      const answer = heard(({ isEmpty }) => isEmpty === true)
      child.send('empty')
      await answer
    },
    stop: () => child.disconnect(),
  }
}
