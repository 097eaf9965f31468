import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { InterventionKind } from './wire.ts'

export interface InterventionNotice {
  intervention_id: number
  project_id: number
  kind: InterventionKind
  public_note: string | null
  pace_per_hour: number | null
  expires_at: Date | null
  started_at: Date
  /** Null while the intervention is in force. */
  ended_at: Date | null
  project_name: string
  /** The owner's address. Null if the owner is disabled. */
  email: string | null
  /** As text, because a Date does not have microsecond precision. */
  created_at: string
}

/** Replaces a pending notice of the intervention. Does nothing if the project has had too many notices today. */
export async function insertNotice(
  tx: Tx,
  { id, project_id }: { id: number; project_id: number },
  maxPerDay: number,
): Promise<void> {
  await sql`
    insert into control.intervention_notices (intervention_id, project_id)
    select ${id}::bigint, ${project_id}::bigint
     where control.count_today('intervention notices of project', ${project_id}::text) <= ${maxPerDay}
    on conflict (intervention_id) do update set created_at = excluded.created_at`.execute(tx)
}

export async function listNotices(tx: ReadTx, atMost: number): Promise<InterventionNotice[]> {
  const { rows } = await sql<InterventionNotice>`
    select notices.intervention_id, notices.project_id, interventions.kind, interventions.public_note,
           interventions.pace_per_hour, interventions.expires_at, interventions.created_at as started_at,
           interventions.ended_at, projects.name as project_name,
           case when owners.is_active then owners.email end as email, notices.created_at::text
      from control.intervention_notices as notices
      join control.interventions as interventions on interventions.id = notices.intervention_id
      join control.projects as projects on projects.id = notices.project_id
      join control.users as owners on owners.id = projects.user_id
     order by notices.created_at limit ${atMost}`.execute(tx)
  return rows
}

/** Does nothing if the notice was replaced after it was read. */
export async function deleteNotice(
  tx: Tx,
  { intervention_id, created_at }: InterventionNotice,
): Promise<void> {
  await sql`
    delete from control.intervention_notices
     where intervention_id = ${intervention_id} and created_at = ${created_at}::timestamptz`.execute(tx)
}

export async function deleteLate(tx: Tx): Promise<void> {
  await sql`
    delete from control.intervention_notices
     where created_at < postern.now() - interval '7 days'`.execute(tx)
}
