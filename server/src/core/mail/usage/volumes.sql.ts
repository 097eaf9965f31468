import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

/** The results that a project's rates are computed from. */
export const volumeKinds = ['sent', 'delivered', 'bounced', 'failed', 'complained'] as const

export type Volume = Record<(typeof volumeKinds)[number], number>
type VolumeRow = Volume & { project_id: number }

const sumsOf = (column: (kind: string) => string) =>
  sql.raw(volumeKinds.map((kind) => `coalesce(sum(${column(kind)}), 0)::bigint as ${kind}`).join(', '))

const sumsOfDays = sumsOf((kind) => kind)
const sumsOfBuckets = sumsOf((kind) => `${kind} + excluded_${kind}`)

/** The last UTC days, including today. Reads at most one row per project and day. */
export const sumDays = (tx: ReadTx, projectIds: readonly number[], days: number): Promise<VolumeRow[]> =>
  sumEach(
    tx,
    projectIds,
    sql`select ${sumsOfDays} from mail.daily_counters
         where shard = postern.shard_of(wanted.id) and project_id = wanted.id
           and day > (postern.now() at time zone 'UTC')::date - ${days}::int`,
  )

/** The current hour and those before it. Reads at most twelve rows per project and hour. */
export const sumHours = (tx: ReadTx, projectIds: readonly number[], hours: number): Promise<VolumeRow[]> =>
  sumEach(
    tx,
    projectIds,
    sql`select ${sumsOfBuckets} from mail.sending_counters
         where shard = postern.shard_of(wanted.id) and project_id = wanted.id
           and bucket_at >= date_trunc('hour', postern.now(), 'UTC') - ${hours - 1} * interval '1 hour'`,
  )

async function sumEach(
  tx: ReadTx,
  projectIds: readonly number[],
  sums: RawBuilder<unknown>,
): Promise<VolumeRow[]> {
  const { rows } = await sql<VolumeRow>`
    select wanted.id as project_id, sums.* from unnest(${projectIds}::bigint[]) as wanted (id)
     cross join lateral (${sums}) as sums`.execute(tx)
  return rows
}
