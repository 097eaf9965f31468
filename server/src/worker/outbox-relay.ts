import { setTimeout as sleep } from 'node:timers/promises'
import { type RelayDeps, relayToControl } from '../core/outbox/relay-to-control.ts'
import { relayToMail } from '../core/outbox/relay-to-mail.ts'
import type { Logger } from '../platform/telemetry/log.ts'

export type OutboxRelayDeps = RelayDeps & { log: Logger }

/** How old may become what the two planes know of each other. */
const pauseMs = 1_000

/**
 * Has control and mail hear what the other has to tell, about once a second, until told to stop. Loops and not queues
 * of jobs: what is to be told lies in rows already, and the next round finds whatever this one left.
 */
export async function runOutboxRelays(deps: OutboxRelayDeps, signal: AbortSignal): Promise<void> {
  await Promise.all([
    rounds('control', () => relayToControl(deps), deps.log, signal),
    rounds('mail', () => relayToMail(deps, signal), deps.log, signal),
  ])
}

async function rounds(
  told: 'control' | 'mail',
  round: () => Promise<{ isMore: boolean }>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    let isMore = false
    try {
      isMore = (await round()).isMore
      if (isFailing) log.info(`${told} is told again what the other plane knows`)
      isFailing = false
    } catch (error) {
      // Once, however long the database is away.
      if (!isFailing)
        log.error({ err: error }, `${told} could not be told what the other plane knows; tried again`)
      isFailing = true
    }
    if (!isMore) await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
}
