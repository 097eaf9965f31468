import { setTimeout as sleep } from 'node:timers/promises'
import { type RelayDeps, relayToControl } from '../core/outbox/relay-to-control.ts'
import { relayToMail } from '../core/outbox/relay-to-mail.ts'
import { type HintListener, Waiter } from '../platform/db/hints.ts'
import type { Logger } from '../platform/telemetry/log.ts'

// Runs the outbox relays between the control and mail databases until the signal is aborted. A relay runs as soon as a hint
// arrives, but at most once per second. These are loops rather than job queues, because the messages are already rows, and
// the next call finds any that remain.

export type OutboxRelayDeps = RelayDeps & {
  /**
   * The hints sent in each database. `control` is undefined in a cell: its worker reads control.outbox from the replica,
   * and a hint sent in the control database would arrive before the row.
   */
  hints?: { mail: HintListener; control: HintListener | undefined } | undefined
  /** For tests. */
  idlePollMs?: number
  log: Logger
}

/** The minimum time between two calls. Without hints, it is the polling interval. */
const pauseMs = 1_000
/** Polling interval while there are no rows and hints are received. Due project scores are found by polling. */
const usualIdlePollMs = 10_000

export async function runOutboxRelays(deps: OutboxRelayDeps, signal: AbortSignal): Promise<void> {
  const { hints } = deps
  await Promise.all([
    runRelay('control', () => relayToControl(deps), hints?.mail, deps, signal),
    runRelay('mail', () => relayToMail(deps, signal), hints?.control, deps, signal),
  ])
}

async function runRelay(
  target: 'control' | 'mail',
  relay: () => Promise<{ isMore: boolean; isEmpty: boolean }>,
  hints: HintListener | undefined,
  { log, idlePollMs = usualIdlePollMs }: OutboxRelayDeps,
  signal: AbortSignal,
): Promise<void> {
  const waiter = hints?.waiter('outbox') ?? new Waiter()
  let isFailing = false
  while (!signal.aborted) {
    let next = { isMore: false, isEmpty: false }
    try {
      next = await relay()
      if (isFailing) log.info(`the outbox relay to ${target} recovered`)
      isFailing = false
    } catch (error) {
      // Logged once, however long the database is unavailable.
      if (!isFailing) log.error({ err: error }, `the outbox relay to ${target} failed; retrying`)
      isFailing = true
    }
    if (next.isMore) continue
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
    if (next.isEmpty && waiter.isListening) await waiter.wait(idlePollMs - pauseMs, signal)
  }
  waiter.close()
}
