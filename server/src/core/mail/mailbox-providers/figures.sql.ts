import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { type ProviderKind, providerKinds } from './count-events.sql.ts'

export interface ProviderCounts extends Record<ProviderKind, number> {
  mailbox_provider: string
}

const sums = sql.raw(providerKinds.map((kind) => `sum(${kind})::bigint as ${kind}`).join(', '))

/** From and to the start of an hour. */
export async function findCounts(
  tx: ReadTx,
  projectId: number,
  { from, to }: { from: Date; to: Date },
): Promise<ProviderCounts[]> {
  const { rows } = await sql<ProviderCounts>`
    select mailbox_provider, ${sums} from mail.mailbox_provider_counters
     where shard = postern.shard_of(${projectId}) and project_id = ${projectId}
       and hour_at >= ${from}::timestamptz and hour_at < ${to}::timestamptz
     group by mailbox_provider`.execute(tx)
  return rows
}

/** Of all projects, in the hours that the overview shows. */
export async function listProviderTotals(tx: ReadTx): Promise<ProviderCounts[]> {
  const { rows } = await sql<ProviderCounts>`
    select mailbox_provider, ${sums} from mail.mailbox_provider_totals
     where hour_at >= date_trunc('hour', postern.now(), 'UTC') - interval '23 hours'
     group by mailbox_provider`.execute(tx)
  return rows
}

/** All events before this time are counted. */
export async function findCountedUntil(tx: ReadTx): Promise<Date> {
  const { rows } = await sql<{ counted_until: Date }>`
    select counted_until from mail.mailbox_provider_progress`.execute(tx)
  if (!rows[0]) throw new Error('mail.mailbox_provider_progress has no row')
  return rows[0].counted_until
}
