import type { Tx } from '../../../platform/db/db.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import type { DailyLimits } from '../../control/caps/caps.ts'
import { addUsage, lockUsage } from './acceptance.sql.ts'
import { bytesExceeded, forwardsExceeded } from './quota.ts'

/**
 * Subtracts the bytes of an inbound mail, and the mails forwarded from it, from the daily quotas of its project, or rejects
 * with `quota_exceeded`.
 */
export async function takeInboundQuota(
  tx: Tx,
  { projectId, now, bytes, forwards }: { projectId: number; now: Date; bytes: number; forwards: number },
  { max_inbound_bytes_per_day: limit, max_forwards_per_day: maxForwards }: DailyLimits,
): Promise<void> {
  const rows = await lockUsage(tx, [projectId])
  const day = rows.find(({ period }) => period === 'day')
  const free = limit - (day?.inbound_bytes ?? 0)
  if (bytes > free) throw bytesExceeded('max_inbound_bytes_per_day', limit, free, bytes, now)
  const freeForwards = maxForwards - (day?.forwarded ?? 0)
  if (forwards > freeForwards && forwards > 0) {
    metrics.forwards.add({ outcome: 'limit' })
    throw forwardsExceeded(maxForwards, freeForwards, forwards, now)
  }
  await addUsage(tx, new Map([[projectId, { mails: 0, bytes: 0, inboundBytes: bytes, forwards }]]))
}
