import { setTimeout as sleep } from 'node:timers/promises'
import { type RelayDeps, relayToControl } from '../core/outbox/relay-to-control.ts'
import { relayToMail } from '../core/outbox/relay-to-mail.ts'
import type { Logger } from '../platform/telemetry/log.ts'

export type OutboxRelayDeps = RelayDeps & { log: Logger }

// Runs the outbox relays between the control and mail databases about once per second, until the signal is
// aborted. These are loops rather than job queues, because the messages are already rows, and the next call
// finds any that remain.

/** How far one side can lag behind the other. */
const pauseMs = 1_000

export async function runOutboxRelays(deps: OutboxRelayDeps, signal: AbortSignal): Promise<void> {
  await Promise.all([
    runRelay('control', () => relayToControl(deps), deps.log, signal),
    runRelay('mail', () => relayToMail(deps, signal), deps.log, signal),
  ])
}

async function runRelay(
  target: 'control' | 'mail',
  relay: () => Promise<{ isMore: boolean }>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let isFailing = false
  while (!signal.aborted) {
    let isMore = false
    try {
      isMore = (await relay()).isMore
      if (isFailing) log.info(`the outbox relay to ${target} recovered`)
      isFailing = false
    } catch (error) {
      // Logged once, however long the database is unavailable.
      if (!isFailing) log.error({ err: error }, `the outbox relay to ${target} failed; retrying`)
      isFailing = true
    }
    if (!isMore) await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
}
