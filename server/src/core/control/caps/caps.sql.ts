import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** What a project holds in control, by the name of its limit. */
const heldBy = {
  max_domains: (project: RawBuilder<unknown>) => sql`control.domains where project_id = ${project}`,
  max_users: (project: RawBuilder<unknown>) => sql`control.members where project_id = ${project}`,
  max_endpoints: (project: RawBuilder<unknown>) => sql`control.endpoints where project_id = ${project}`,
  max_routes: (project: RawBuilder<unknown>) => sql`control.routes where project_id = ${project}`,
  max_api_keys: (project: RawBuilder<unknown>) => sql`control.api_keys where project_id = ${project}`,
  max_pending_invitations: (project: RawBuilder<unknown>) =>
    sql`control.members where project_id = ${project} and user_id is null`,
}

export type Held = keyof typeof heldBy

export async function countOf(tx: ReadTx, what: Held, projectId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from ${heldBy[what](sql`${projectId}`)}`.execute(tx)
  return rows[0]?.count ?? 0
}

/** All of them at once. */
export async function countAll(tx: ReadTx, projectId: number): Promise<Record<Held, number>> {
  const counts = Object.entries(heldBy).map(
    ([name, held]) => sql`(select count(*)::int from ${held(sql`${projectId}`)}) as ${sql.ref(name)}`,
  )
  const { rows } = await sql<Record<Held, number>>`select ${sql.join(counts)}`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('a count gave no row')
  return row
}

/** Held to the end of the transaction: two that count the projects of an owner do so one after the other. */
export async function countProjectsOf(tx: Tx, userId: number): Promise<number> {
  await sql`select from control.users where id = ${userId} for no key update`.execute(tx)
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from control.projects where user_id = ${userId}`.execute(tx)
  return rows[0]?.count ?? 0
}
