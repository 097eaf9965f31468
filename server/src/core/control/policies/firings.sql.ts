import { type Selectable, sql } from 'kysely'
import type { OneStatement, ReadTx, Schema } from '../../../platform/db/db.ts'
import type { FiringOutcome } from './wire.ts'

export interface FiringRow extends Omit<Selectable<Schema['control.firings']>, 'outcome'> {
  outcome: FiringOutcome
}

export interface FiringFilter {
  policyId: number | undefined
  projectId: number | undefined
}

/**
 * First reads the ids, from an index alone. If one statement read whole rows, PostgreSQL would prefer the primary key and
 * filter by policy, and then a policy that has not fired for a long time costs a scan of all newer firings.
 */
export async function list(
  tx: ReadTx,
  { policyId, projectId, limit, beforeId }: FiringFilter & { limit: number; beforeId: number },
): Promise<FiringRow[]> {
  const { rows } = await sql<FiringRow>`
    select * from control.firings where id = any(array(
      select id from control.firings
       where id < ${beforeId}
         ${policyId === undefined ? sql`` : sql`and policy_id = ${policyId}`}
         ${projectId === undefined ? sql`` : sql`and project_id = ${projectId}`}
       order by id desc limit ${limit}))
     order by id desc`.execute(tx)
  return rows
}

/** Stops at `atMost`. */
export async function countOfPolicy(tx: ReadTx, policyId: number, atMost: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
      from (select from control.firings where policy_id = ${policyId} limit ${atMost}) as counted`.execute(tx)
  return rows[0]?.count ?? 0
}

export async function deleteOld(tx: OneStatement, days: number, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.firings where ctid = any(array(
      select ctid from control.firings where created_at < postern.now() - make_interval(days => ${days})
      order by created_at limit ${atMost}))`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
