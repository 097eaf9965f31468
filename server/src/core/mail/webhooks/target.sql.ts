import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface TargetRow {
  url: string
  is_active: boolean
  encrypted_secret: Buffer
  /** The database's time. */
  now_seconds: number
}

/** Of several endpoints, as each is at this moment, in the order of the question. Undefined: it is no more. */
export async function findTargets(
  tx: ReadTx,
  keys: readonly { project_id: number; endpoint_id: number }[],
): Promise<(TargetRow | undefined)[]> {
  const { rows } = await sql<TargetRow & { place: number }>`
    select asked.place::int - 1 as place, endpoints.url, endpoints.is_active, endpoints.encrypted_secret,
           floor(extract(epoch from postern.now()))::float8 as now_seconds
      from unnest(${keys.map(({ project_id }) => project_id)}::bigint[],
                  ${keys.map(({ endpoint_id }) => endpoint_id)}::bigint[])
             with ordinality as asked (project_id, endpoint_id, place)
      join control.endpoints as endpoints
        on endpoints.id = asked.endpoint_id and endpoints.project_id = asked.project_id`.execute(tx)
  const byPlace = new Map(rows.map((row) => [row.place, row]))
  return keys.map((_, place) => byPlace.get(place))
}
