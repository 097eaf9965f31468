import { setTimeout as sleep } from 'node:timers/promises'
import { type TellDeps, tellControl } from '../core/reputation/tell-control.ts'
import type { Logger } from '../platform/log.ts'

export type TellingDeps = TellDeps & { log: Logger }

/** How old a project's figures may become. */
const pauseMs = 1_000

/**
 * Tells control what was counted, about once a second, until it is told to stop. A loop and not a queue of jobs: what
 * is to be told lies in rows already, and the next round finds whatever this one left.
 */
export async function keepControlTold({ db, mailDb, log }: TellingDeps, signal: AbortSignal): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    let isMore = false
    try {
      isMore = (await tellControl({ db, mailDb })).isMore
      if (isFailing) log.info('figures of projects are told again')
      isFailing = false
    } catch (error) {
      // Once, however long the database is away.
      if (!isFailing) log.error({ err: error }, 'figures of projects could not be told; tried again')
      isFailing = true
    }
    if (!isMore) await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
}
