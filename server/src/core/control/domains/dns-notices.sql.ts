import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { WarningDays } from './check-schedule.ts'

export interface DomainNotice {
  domain_id: number
  project_id: number
  days: number
  name: string
  project_name: string
  last_check_error: string | null
  /** Whether DNS lookups still fail. */
  is_unanswered: boolean
  /** The owner's address. Null if the owner is disabled. */
  email: string | null
  /** As text, because a Date does not have microsecond precision. */
  created_at: string
}

/** Replaces a pending notice for the domain. */
export async function insertNotice(
  tx: Tx,
  { project_id, id }: { project_id: number; id: number },
  days: WarningDays,
): Promise<void> {
  await sql`
    insert into control.domain_notices (domain_id, project_id, days) values (${id}, ${project_id}, ${days})
    on conflict (domain_id) do update set days = excluded.days, created_at = excluded.created_at`.execute(tx)
}

export async function listNotices(tx: ReadTx, atMost: number): Promise<DomainNotice[]> {
  const { rows } = await sql<DomainNotice>`
    select notices.domain_id, notices.project_id, notices.days, domains.name, projects.name as project_name,
           domains.last_check_error, domains.unanswered_since is not null as is_unanswered,
           case when owners.is_active then owners.email end as email, notices.created_at::text
      from control.domain_notices as notices
      join control.domains as domains on domains.id = notices.domain_id
      join control.projects as projects on projects.id = notices.project_id
      join control.users as owners on owners.id = projects.user_id
     order by notices.created_at limit ${atMost}`.execute(tx)
  return rows
}

/** Does nothing if the notice was replaced after it was read. */
export async function deleteNotice(tx: Tx, { domain_id, created_at }: DomainNotice): Promise<void> {
  await sql`
    delete from control.domain_notices
     where domain_id = ${domain_id} and created_at = ${created_at}::timestamptz`.execute(tx)
}

export async function deleteLate(tx: Tx): Promise<void> {
  await sql`
    delete from control.domain_notices where created_at < postern.now() - interval '7 days'`.execute(tx)
}
