import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { allOf, boundedScan } from '../../shared/bounded-scan.ts'

export interface AttemptRow {
  id: string
  endpoint_id: number
  event_id: string
  event_type: string
  attempt: number
  outcome: 'delivered' | 'failed' | 'given_up' | 'gone'
  status: number | null
  latency_ms: number
  response: string | null
  error: string | null
}

export interface StoredAttempt extends AttemptRow {
  shard: number
}

export interface AttemptSearch {
  limit: number
  beforeId?: string | undefined
  eventId?: string | undefined
  outcome?: AttemptRow['outcome'] | undefined
}

/** Attempts scanned for one page; see core/shared/bounded-scan.ts. */
const scanLimit = 2_000

const columns = sql`
  attempts.id, attempts.endpoint_id, attempts.event_id, attempts.event_type, attempts.attempt, attempts.outcome,
  attempts.status, attempts.latency_ms, attempts.response, attempts.error`

export async function listByEndpoint(
  tx: ReadTx,
  projectId: number,
  endpointId: number,
  { limit, beforeId, eventId, outcome }: AttemptSearch,
): Promise<{ rows: AttemptRow[]; next: string | null }> {
  const found = boundedScan({
    columns: sql`attempts.shard, attempts.id`,
    from: sql`mail.delivery_attempts as attempts`,
    within: sql<boolean>`attempts.shard = postern.shard_of(${projectId}) and attempts.endpoint_id = ${endpointId}
      and attempts.project_id = ${projectId}
      and attempts.id < ${beforeId ?? 'ffffffff-ffff-ffff-ffff-ffffffffffff'}::uuid
      ${eventId === undefined ? sql`` : sql`and attempts.event_id = ${eventId}`}`,
    order: sql`attempts.id desc`,
    passes: allOf(outcome === undefined ? [] : [sql<boolean>`attempts.outcome = ${outcome}`]),
    ...{ bound: scanLimit, limit },
  })
  const { rows } = await sql<{ attempt: AttemptRow | null; stop: string | null }>`
    with ${found}
    select to_json(shown) as attempt, null as stop, found.id from found
     cross join lateral (
       select ${columns} from mail.delivery_attempts as attempts
        where attempts.shard = found.shard and attempts.id = found.id limit 1) as shown
    union all
    select null, stop.id::text, stop.id from stop
    order by 3 desc`.execute(tx)
  const attempts = rows.flatMap(({ attempt }) => attempt ?? [])
  const shown = attempts.slice(0, limit)
  const stop = rows.find((row) => row.stop !== null)?.stop ?? null
  return { rows: shown, next: attempts.length > limit ? (shown.at(-1)?.id ?? null) : stop }
}

export async function findById(
  tx: ReadTx,
  projectId: number,
  id: string,
): Promise<StoredAttempt | undefined> {
  const { rows } = await sql<StoredAttempt>`
    select ${columns}, attempts.shard from mail.delivery_attempts as attempts
     where attempts.shard = postern.shard_of(${projectId}) and attempts.id = ${id}
       and attempts.project_id = ${projectId}`.execute(tx)
  return rows[0]
}
