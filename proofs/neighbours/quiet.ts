import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Promised } from '../check.ts'
import type { Tenant } from './stage.ts'

/** The tenant that is not attacking. */
export interface Quiet {
  /** Sends and reads for this time. Resolves when every request has received a response. */
  speak(forMs: number): Promise<LoadResults>
  stop(): void
}

export interface QuietOptions {
  url: string
  tenant: Tenant
  /** The prefix of its recipients' addresses. */
  recipients: string
  pauseMs: number
}

export interface QuietRequest {
  kind: 'POST' | 'GET'
  /** 0 without a response. */
  status: number
  error: string
  ms: number
}

export interface LoadResults {
  requests: QuietRequest[]
  /** Accepted messages with the time in ms, by this machine's clock. */
  promised: (Promised & { at: number })[]
}

export function startQuiet(options: QuietOptions): Quiet {
  const child = fork(path.join(import.meta.dirname, 'quiet-process.ts'), [JSON.stringify(options)])
  return {
    async speak(forMs) {
      const answer = once(child, 'message') as Promise<[LoadResults]>
      child.send(forMs)
      return (await answer)[0]
    },
    stop: () => child.disconnect(),
  }
}
