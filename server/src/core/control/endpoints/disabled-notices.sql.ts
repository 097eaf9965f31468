import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface DisabledEndpoint {
  id: number
  name: string
  project_id: number
  project_name: string
  disabled_reason: string
  /** The owner's address. */
  email: string
}

/** Undefined if the endpoint is enabled or deleted, or the project's owner is disabled. */
export async function findDisabled(tx: ReadTx, endpointId: number): Promise<DisabledEndpoint | undefined> {
  const { rows } = await sql<DisabledEndpoint>`
    select endpoints.id, endpoints.name, endpoints.project_id, projects.name as project_name,
           endpoints.disabled_reason, owners.email
      from control.endpoints as endpoints
      join control.projects as projects on projects.id = endpoints.project_id
      join control.users as owners on owners.id = projects.user_id and owners.is_active
     where endpoints.id = ${endpointId} and not endpoints.is_active
       and endpoints.disabled_reason is not null`.execute(tx)
  return rows[0]
}
