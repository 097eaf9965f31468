import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { noticeDays } from '../notifications/queued-mail.ts'
import type { InterventionKind } from './wire.ts'

export interface MailedIntervention {
  id: number
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
  /** The owner's address. */
  email: string
}

/** Adds a mail, unless the project has had too many today. */
export async function insertMail(
  tx: Tx,
  { id, project_id }: { id: number; project_id: number },
  maxPerDay: number,
): Promise<void> {
  await sql`
    select control.add_system_mail(
             'intervention', ${id}, ${project_id}, postern.now() + ${noticeDays} * interval '1 day')
     where control.count_today('intervention mails of project', ${project_id}::text) <= ${maxPerDay}`.execute(
    tx,
  )
}

/** Undefined if the project's owner is disabled. */
export async function findMailed(tx: ReadTx, id: number): Promise<MailedIntervention | undefined> {
  const { rows } = await sql<MailedIntervention>`
    select interventions.id, interventions.project_id, interventions.kind, interventions.public_note,
           interventions.pace_per_hour, interventions.expires_at, interventions.drains_before,
           interventions.created_at as started_at, interventions.ended_at, projects.name as project_name,
           owners.email
      from control.interventions as interventions
      join control.projects as projects on projects.id = interventions.project_id
      join control.users as owners on owners.id = projects.user_id and owners.is_active
     where interventions.id = ${id}`.execute(tx)
  return rows[0]
}
