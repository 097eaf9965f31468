import { setTimeout as sleep } from 'node:timers/promises'
import { type Stage, waitMs } from './run.ts'

/** The time until mail is accepted again, and until a mail accepted then is with the MTA. */
export interface Recovery {
  acceptedMs: number
  dispatchedMs: number
}

const pollEveryMs = 20
const usualPatienceMs = 120_000

/** Mail is accepted and sent again. */
export const hasRecovered = ({ acceptedMs, dispatchedMs }: Recovery): boolean =>
  Number.isFinite(acceptedMs) && Number.isFinite(dispatchedMs)

/**
 * Waits for it, from a moment on by the clock of this machine. What was on its way before says nothing, so the mail that
 * counts for both is one that was promised after that moment. Not back at all is endless.
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
