import { fork } from 'node:child_process'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeCertificate } from '../server/src/testing/peers/certificate.ts'

/** Where webhooks end up, and what it has of them. */
export interface Receiver {
  port: number
  pid: number
  /** CA of its certificate. */
  caFile: string
  count(): number
  /** Waits until there are so many; rejects when for so long there was no other. */
  until(count: number, silenceMs: number): Promise<void>
  read(): Promise<Arrivals>
  empty(): Promise<void>
  stop(): void
}

export interface Arrivals {
  /** By the clock of this machine, in ms, each beside its id. */
  times: number[]
  ids: string[]
  /** Of the first one. */
  body: string
}

/** With its own certificate in that directory, unless it is given one. */
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
          throw new Error(`The receiver has ${count} of ${wanted}, and nothing arrived for ${silenceMs} ms.`)
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
