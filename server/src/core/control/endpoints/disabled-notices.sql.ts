import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface Notice {
  endpoint_id: number
  project_id: number
  name: string
  url: string
  project_name: string
  /** Null if the endpoint has been re-enabled since then. */
  disabled_reason: string | null
  /** The owner's address. Null if the owner is disabled. */
  email: string | null
  /** As text, because a Date does not have microsecond precision. */
  created_at: string
}

export async function listNotices(tx: ReadTx, atMost: number): Promise<Notice[]> {
  const { rows } = await sql<Notice>`
    select notices.endpoint_id, notices.project_id, endpoints.name, endpoints.url, projects.name as project_name,
           case when not endpoints.is_active then endpoints.disabled_reason end as disabled_reason,
           case when owners.is_active then owners.email end as email, notices.created_at::text
      from control.endpoint_notices as notices
      join control.endpoints as endpoints on endpoints.id = notices.endpoint_id
      join control.projects as projects on projects.id = notices.project_id
      join control.users as owners on owners.id = projects.user_id
     order by notices.created_at limit ${atMost}`.execute(tx)
  return rows
}

/** Does nothing if the endpoint was disabled again after the notice was read. */
export async function deleteNotice(tx: Tx, { endpoint_id, created_at }: Notice): Promise<void> {
  await sql`
    delete from control.endpoint_notices
     where endpoint_id = ${endpoint_id} and created_at = ${created_at}::timestamptz`.execute(tx)
}

export async function deleteLate(tx: Tx): Promise<void> {
  await sql`
    delete from control.endpoint_notices where created_at < postern.now() - interval '7 days'`.execute(tx)
}
