import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

export interface Denial {
  actorId: number
  operation: string
  error: string
  projectId: number | null
  requestId: string
}

export async function upsertDenial(
  tx: Tx,
  { actorId, operation, error, projectId, requestId }: Denial,
  count: number,
): Promise<void> {
  await sql`
    insert into control.denials (minute, actor_id, operation, error, project_id, count, last_request_id)
    values (date_trunc('minute', postern.now(), 'UTC'), ${actorId}, ${operation}, ${error}, ${projectId},
      ${count}, ${requestId})
    on conflict (minute, actor_id, operation, error) do update
      set count = denials.count + excluded.count, project_id = excluded.project_id,
          last_request_id = excluded.last_request_id`.execute(tx)
}

export function selectDenials(
  tx: ReadTx,
  {
    actorId,
    limit,
    beforeId,
  }: { actorId?: number | undefined; limit: number; beforeId?: number | undefined },
) {
  let query = tx.selectFrom('control.denials').selectAll().orderBy('id', 'desc').limit(limit)
  if (actorId !== undefined) query = query.where('actor_id', '=', actorId)
  if (beforeId !== undefined) query = query.where('id', '<', beforeId)
  return query.execute()
}

export async function deleteOldDenials(tx: OneStatement, days: number, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.denials where ctid = any(array(
      select ctid from control.denials where minute < postern.now() - make_interval(days => ${days})
      order by minute limit ${atMost}))`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
