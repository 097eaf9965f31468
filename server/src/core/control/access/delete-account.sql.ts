import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export interface OwnMembership {
  member_id: number
  project_id: number
  project_name: string
  email: string
  role: string
}

/** Locks the user, so that no project is created or joined until the transaction ends. In order of the projects' ids. */
export async function listMembershipsOf(tx: Tx, userId: number): Promise<OwnMembership[]> {
  const { rows } = await sql<OwnMembership>`select * from control.lock_memberships(${userId})`.execute(tx)
  return rows
}

/** False if rows of the administrators' side refer to the user. Nothing is deleted then. */
export async function deleteUser(tx: Tx, userId: number): Promise<boolean> {
  const { rows } = await sql<{ deleted: boolean }>`
    select control.delete_account(${userId}) as deleted`.execute(tx)
  return rows[0]?.deleted === true
}
