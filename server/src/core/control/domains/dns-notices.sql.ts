import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface UnansweredDomain {
  id: number
  name: string
  project_id: number
  project_name: string
  status: string
  /** How long DNS lookups have been failing. */
  days: number
  last_check_error: string | null
  /** The owner's address. */
  email: string
}

/** Undefined if DNS lookups succeed, the domain is deleted, or the project's owner is disabled. */
export async function findUnanswered(tx: ReadTx, domainId: number): Promise<UnansweredDomain | undefined> {
  const { rows } = await sql<UnansweredDomain>`
    select domains.id, domains.name, domains.project_id, projects.name as project_name, domains.status,
           floor(extract(epoch from postern.now() - domains.unanswered_since) / 86400)::int as days,
           domains.last_check_error, owners.email
      from control.domains as domains
      join control.projects as projects on projects.id = domains.project_id
      join control.users as owners on owners.id = projects.user_id and owners.is_active
     where domains.id = ${domainId} and domains.unanswered_since is not null`.execute(tx)
  return rows[0]
}
