import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { InterventionKind } from './wire.ts'

export interface InterventionMail {
  intervention_id: number
  project_id: number
  kind: InterventionKind
  public_note: string | null
  pace_per_hour: number | null
  expires_at: Date | null
  /** Set for a gradual release. */
  drains_before: Date | null
  started_at: Date
  /** Null while the intervention is in force. */
  ended_at: Date | null
  project_name: string
  /** The owner's address. Null if the owner is disabled. */
  email: string | null
  /** As text, because a Date does not have microsecond precision. */
  created_at: string
}

/** Replaces a pending mail about the intervention. Does nothing if the project has had too many today. */
export async function insertMail(
  tx: Tx,
  { id, project_id }: { id: number; project_id: number },
  maxPerDay: number,
): Promise<void> {
  await sql`
    insert into control.intervention_mails (intervention_id, project_id)
    select ${id}::bigint, ${project_id}::bigint
     where control.count_today('intervention mails of project', ${project_id}::text) <= ${maxPerDay}
    on conflict (intervention_id) do update set created_at = excluded.created_at`.execute(tx)
}

export async function listMails(tx: ReadTx, atMost: number): Promise<InterventionMail[]> {
  const { rows } = await sql<InterventionMail>`
    select mails.intervention_id, mails.project_id, interventions.kind, interventions.public_note,
           interventions.pace_per_hour, interventions.expires_at, interventions.drains_before,
           interventions.created_at as started_at, interventions.ended_at, projects.name as project_name,
           case when owners.is_active then owners.email end as email, mails.created_at::text
      from control.intervention_mails as mails
      join control.interventions as interventions on interventions.id = mails.intervention_id
      join control.projects as projects on projects.id = mails.project_id
      join control.users as owners on owners.id = projects.user_id
     order by mails.created_at limit ${atMost}`.execute(tx)
  return rows
}

/** Does nothing if the mail was replaced after it was read. */
export async function deleteMail(tx: Tx, { intervention_id, created_at }: InterventionMail): Promise<void> {
  await sql`
    delete from control.intervention_mails
     where intervention_id = ${intervention_id} and created_at = ${created_at}::timestamptz`.execute(tx)
}

export async function deleteLate(tx: Tx): Promise<void> {
  await sql`
    delete from control.intervention_mails
     where created_at < postern.now() - interval '7 days'`.execute(tx)
}
