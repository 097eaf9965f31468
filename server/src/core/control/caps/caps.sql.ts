import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** The rows of a project that count against each limit, by limit name. */
const countedRows = {
  max_domains: (project: RawBuilder<unknown>) => sql`control.domains where project_id = ${project}`,
  max_users: (project: RawBuilder<unknown>) => sql`control.members where project_id = ${project}`,
  max_endpoints: (project: RawBuilder<unknown>) => sql`control.endpoints where project_id = ${project}`,
  max_routes: (project: RawBuilder<unknown>) => sql`control.routes where project_id = ${project}`,
  max_api_keys: (project: RawBuilder<unknown>) => sql`control.api_keys where project_id = ${project}`,
  max_pending_invitations: (project: RawBuilder<unknown>) =>
    sql`control.members where project_id = ${project} and user_id is null`,
}

export type CountedLimit = keyof typeof countedRows

export async function countOf(tx: ReadTx, limit: CountedLimit, projectId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from ${countedRows[limit](sql`${projectId}`)}`.execute(tx)
  return rows[0]?.count ?? 0
}

/** All counts in one query. */
export async function countAll(tx: ReadTx, projectId: number): Promise<Record<CountedLimit, number>> {
  const counts = Object.entries(countedRows).map(
    ([name, rowsOf]) => sql`(select count(*)::int from ${rowsOf(sql`${projectId}`)}) as ${sql.ref(name)}`,
  )
  const { rows } = await sql<Record<CountedLimit, number>>`select ${sql.join(counts)}`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

/** Locks the owner until the transaction ends, so concurrent counts are serialized. */
export async function countProjectsOf(tx: Tx, userId: number): Promise<number> {
  await sql`select from control.users where id = ${userId} for no key update`.execute(tx)
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from control.projects where user_id = ${userId}`.execute(tx)
  return rows[0]?.count ?? 0
}
