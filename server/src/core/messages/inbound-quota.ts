import type { Tx } from '../../platform/db/db.ts'
import type { ByteLimits } from '../caps/caps.ts'
import { addUsage, lockUsage } from './acceptance.sql.ts'
import { bytesExceeded } from './quota.ts'

/** Takes the bytes of a mail that came in from the day's quota of its project, or rejects with `quota_exceeded`. */
export async function takeInboundQuota(
  tx: Tx,
  { projectId, now, bytes }: { projectId: number; now: Date; bytes: number },
  { max_inbound_bytes_per_day: limit }: ByteLimits,
): Promise<void> {
  const rows = await lockUsage(tx, [projectId])
  const free = limit - (rows.find(({ period }) => period === 'day')?.inbound_bytes ?? 0)
  if (bytes > free) throw bytesExceeded('max_inbound_bytes_per_day', limit, free, bytes, now)
  await addUsage(tx, new Map([[projectId, { mails: 0, bytes: 0, inboundBytes: bytes }]]))
}
