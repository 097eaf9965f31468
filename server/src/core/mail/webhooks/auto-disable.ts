import type { QueueState } from './endpoint-queues.sql.ts'

// The rule by which an endpoint is disabled automatically: when it answers 410 Gone, or when all deliveries fail for five
// days. The mail side decides and publishes `endpoint.disabled`; control disables the endpoint and notifies the project's
// owner (core/control/endpoints/health.ts, disabled-notices.ts).

const failingDays = 5
/** For an endpoint with few events the days alone say nothing: a week without events is not a week of failures. */
const minFailures = 12

const goneReason = 'The endpoint responded 410 Gone.'
const failingReason = `All deliveries failed for ${failingDays} days.`

/** Why the endpoint of a released queue is disabled; undefined: it is not. `state`: of the queue, this run included. */
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
