import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface TargetRow {
  url: string
  is_active: boolean
  encrypted_secret: Buffer
  /** The database's time. */
  now_seconds: number
}

/** The current state of several endpoints, in the order of `keys`. Undefined if deleted. */
export async function findTargets(
  tx: ReadTx,
  keys: readonly { project_id: number; endpoint_id: number }[],
): Promise<(TargetRow | undefined)[]> {
  const { rows } = await sql<TargetRow & { index: number }>`
    select requested.ordinal::int - 1 as index, endpoints.url, endpoints.is_active, endpoints.encrypted_secret,
           floor(extract(epoch from postern.now()))::float8 as now_seconds
      from unnest(${keys.map(({ project_id }) => project_id)}::bigint[],
                  ${keys.map(({ endpoint_id }) => endpoint_id)}::bigint[])
             with ordinality as requested (project_id, endpoint_id, ordinal)
      join control.endpoints as endpoints
        on endpoints.id = requested.endpoint_id and endpoints.project_id = requested.project_id`.execute(tx)
  const byIndex = new Map(rows.map((row) => [row.index, row]))
  return keys.map((_, index) => byIndex.get(index))
}
