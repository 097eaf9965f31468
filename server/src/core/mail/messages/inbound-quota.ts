import type { Tx } from '../../../platform/db/db.ts'
import type { DailyLimits } from '../../control/caps/caps.ts'
import { forwards as forwardCount } from '../inbound/metrics.ts'
import { addUsage, lockUsage } from './acceptance.sql.ts'
import { bytesExceeded, forwardsExceeded } from './quota.ts'

/**
 * Deducts an inbound message's bytes, and the messages forwarded from it, from its project's daily quotas.
 * Rejects with `quota_exceeded` if a quota would be exceeded.
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
    forwardCount.add({ outcome: 'limit' })
    throw forwardsExceeded(maxForwards, freeForwards, forwards, now)
  }
  await addUsage(tx, new Map([[projectId, { mails: 0, bytes: 0, inboundBytes: bytes, forwards }]]))
}
