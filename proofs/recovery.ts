import { setTimeout as sleep } from 'node:timers/promises'
import { type Stage, waitMs } from './run.ts'

/** Two times: until messages are accepted again, and until a message accepted from then on reaches the MTA. */
export interface Recovery {
  acceptedMs: number
  dispatchedMs: number
}

const pollEveryMs = 20
const usualPatienceMs = 120_000

/** Whether messages are accepted and sent again. */
export const hasRecovered = ({ acceptedMs, dispatchedMs }: Recovery): boolean =>
  Number.isFinite(acceptedMs) && Number.isFinite(dispatchedMs)

/**
 * Waits for recovery after the specified time on this machine's clock. Only messages accepted after that time count. If
 * there is no recovery, the durations are infinite.
 */
export function waitForRecovery(
  { loadResults, sink }: Pick<Stage, 'loadResults' | 'sink'>,
  isCountsOnly = false,
): (sinceMs: number) => Promise<Recovery> {
  const patienceMs = waitMs(usualPatienceMs, isCountsOnly)
  return async (sinceMs) => {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(pollEveryMs)) {
      const promised = new Map(
        loadResults.promised.filter(({ at }) => at > sinceMs).map(({ id, at }) => [id, at] as const),
      )
      if (promised.size === 0) continue
      const received = (await sink.read()).filter(({ messageId }) =>
        promised.has(messageId.split('@')[0] ?? ''),
      )
      if (received.length === 0) continue
      return {
        acceptedMs: Math.min(...promised.values()) - sinceMs,
        dispatchedMs: Math.min(...received.map(({ at }) => at)) - sinceMs,
      }
    }
    return { acceptedMs: Number.POSITIVE_INFINITY, dispatchedMs: Number.POSITIVE_INFINITY }
  }
}
