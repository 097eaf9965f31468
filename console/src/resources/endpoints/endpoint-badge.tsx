import type { DeliveryAttempt, Endpoint } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'

/**
 * Whether an endpoint works: "active" only after a successful delivery, and only while deliveries are not failing.
 */
export function EndpointBadge({
  endpoint: { is_active, consecutive_failures, last_success_at },
  lastOutcome,
}: {
  endpoint: Endpoint
  /** The outcome of the newest attempt, if known. */
  lastOutcome?: DeliveryAttempt['outcome'] | undefined
}) {
  if (!is_active) return <Badge tone="bad">inactive</Badge>
  const isFailing = lastOutcome === undefined ? consecutive_failures > 0 : lastOutcome !== 'delivered'
  if (isFailing) return <Badge tone="bad">failing</Badge>
  const hasSucceeded = last_success_at !== null || lastOutcome === 'delivered'
  return hasSucceeded ? <Badge tone="good">active</Badge> : <Badge>no deliveries yet</Badge>
}
