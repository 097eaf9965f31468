import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { InterventionKind } from './wire.ts'

/** Customers' role can read only these columns. */
export interface PublicRow {
  id: number
  kind: InterventionKind
  public_note: string | null
  pace_per_hour: number | null
  expires_at: Date | null
  created_at: Date
}

export async function listPublicRows(tx: ReadTx, projectId: number): Promise<PublicRow[]> {
  const { rows } = await sql<PublicRow>`
    select id, kind, public_note, pace_per_hour, expires_at, created_at from control.interventions
     where project_id = ${projectId} and ended_at is null order by id`.execute(tx)
  return rows
}

export interface NoticeRow extends PublicRow {
  ended_at: Date | null
  /** Null if there is no appeal, as is `appealed_at`. */
  appeal: string | null
  appealed_at: Date | null
}

const selected = sql`
  select id, kind, public_note, pace_per_hour, expires_at, ended_at, interventions.created_at,
         appeals.text as appeal, appeals.created_at as appealed_at
    from control.interventions as interventions
    left join control.appeals as appeals on appeals.intervention_id = interventions.id`

export async function listByProject(
  tx: ReadTx,
  projectId: number,
  { limit, beforeId, inForce }: { limit: number; beforeId: number; inForce: boolean },
): Promise<NoticeRow[]> {
  const { rows } = await sql<NoticeRow>`${selected}
    where interventions.project_id = ${projectId} and id < ${beforeId}
          ${inForce ? sql`and ended_at is null` : sql``}
    order by id desc limit ${limit}`.execute(tx)
  return rows
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<NoticeRow | undefined> {
  const { rows } = await sql<NoticeRow>`${selected}
    where interventions.project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

/** Returns false if there is an appeal already. */
export async function insertAppeal(
  tx: Tx,
  projectId: number,
  { id, userId, text }: { id: number; userId: number; text: string },
): Promise<boolean> {
  const { rows } = await sql`
    insert into control.appeals (intervention_id, project_id, user_id, text)
    values (${id}, ${projectId}, ${userId}, ${text})
    on conflict (intervention_id) do nothing returning true`.execute(tx)
  return rows.length > 0
}
