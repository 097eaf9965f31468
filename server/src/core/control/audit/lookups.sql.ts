import { type Selectable, sql } from 'kysely'
import type { OneStatement, ReadTx, Schema, Tx } from '../../../platform/db/db.ts'

export interface Lookup {
  actorId: number
  operation: string
  question: string
  projectIds: readonly number[]
  requestId: string
}

export type LookupRow = Selectable<Schema['control.lookups']>

export async function insertLookup(tx: Tx, lookup: Lookup): Promise<void> {
  const { actorId, operation, question, projectIds, requestId } = lookup
  await sql`
    insert into control.lookups (actor_id, operation, question, project_ids, request_id)
    values (${actorId}, ${operation}, ${question}, ${projectIds}::bigint[], ${requestId})`.execute(tx)
}

export function selectLookups(
  tx: ReadTx,
  { actorId, limit, beforeId }: { actorId?: number | undefined; limit: number; beforeId: number },
): Promise<LookupRow[]> {
  let query = tx
    .selectFrom('control.lookups')
    .selectAll()
    .where('id', '<', beforeId)
    .orderBy('id', 'desc')
    .limit(limit)
  if (actorId !== undefined) query = query.where('actor_id', '=', actorId)
  return query.execute()
}

export async function deleteOldLookups(tx: OneStatement, days: number, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.lookups where ctid = any(array(
      select ctid from control.lookups where created_at < postern.now() - make_interval(days => ${days})
      order by created_at limit ${atMost}))`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
