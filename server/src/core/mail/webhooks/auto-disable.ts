import type { QueueState } from './endpoint-queues.sql.ts'

// The rule for automatically disabling an endpoint: it responded with 410 Gone, or all deliveries have
// failed for five days. The mail side decides and publishes `endpoint.disabled`; the control side disables
// the endpoint and notifies the project's owner (core/control/endpoints/health.ts, disabled-notices.ts).

const failingDays = 5
/**
 * Counting days is not enough for an endpoint with few events: a week without events is not a week of
 * failures.
 */
const minFailures = 12

const goneReason = 'The endpoint responded 410 Gone.'
const failingReason = `All deliveries failed for ${failingDays} days.`

/**
 * Returns the reason for disabling the endpoint of a released queue, or undefined if the endpoint stays
 * enabled. `state` is the queue's state, including this run.
 */
export function autoDisableReason(
  { isGone, hasFailed }: { isGone: boolean; hasFailed: boolean },
  state: Pick<QueueState, 'failing_seconds' | 'failures'> | undefined,
): string | undefined {
  if (isGone) return goneReason
  const isFailingForTooLong =
    hasFailed &&
    (state?.failing_seconds ?? 0) >= failingDays * 86_400 &&
    (state?.failures ?? 0) >= minFailures
  return isFailingForTooLong ? failingReason : undefined
}
