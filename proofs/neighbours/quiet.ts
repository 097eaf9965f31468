import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Promised } from '../check.ts'
import type { Tenant } from './stage.ts'

/** The tenant beside the attacker. */
export interface Quiet {
  /** Sends and reads for so long; resolves when every request was answered. */
  speak(forMs: number): Promise<LoadResults>
  stop(): void
}

export interface QuietOptions {
  url: string
  tenant: Tenant
  /** What the names of its recipients begin with. */
  recipients: string
  pauseMs: number
}

export interface QuietRequest {
  kind: 'POST' | 'GET'
  /** 0: no answer. */
  status: number
  error: string
  ms: number
}

export interface LoadResults {
  requests: QuietRequest[]
  /** Accepted, and when, by the clock of this machine, in ms. */
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
