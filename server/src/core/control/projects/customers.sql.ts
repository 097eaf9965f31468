import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { companions, type FlatRow, fields, one, type ProjectRow, rowOf } from './projects.sql.ts'

/** Customers' operations on their own projects. */

/** Increments the version. */
export async function rename(tx: Tx, id: number, name: string): Promise<ProjectRow> {
  const { rows } = await sql<FlatRow>`
    with projects as (
      update control.projects set name = ${name}, version = version + 1, updated_at = postern.now()
      where id = ${id} returning *
    )
    select ${fields} from projects ${companions}`.execute(tx)
  return rowOf(one(rows))
}

export interface NewOwnProject {
  name: string
  userId: number
  planId: number
  allowServiceMta: boolean
}

/**
 * Returns undefined if the plan cannot be assigned. The transaction is not scoped to a project, so it cannot read the new
 * project's statistics. The initial values are returned instead.
 */
export async function insertOwn(
  tx: Tx,
  { name, userId, planId, allowServiceMta }: NewOwnProject,
): Promise<ProjectRow | undefined> {
  const { rows } = await sql<FlatRow>`
    select ${fields}
      from control.create_project(${userId}, ${name}, ${planId}, ${allowServiceMta}) as projects
      cross join (values (100, 0, 100, 0::bigint, 0::bigint, 0::bigint))
        as stats (computed_score, score_offset, reputation_score, bounced, failed, complained)
      join control.plans as plans on plans.id = projects.plan_id`.execute(tx)
  return rows[0] && rowOf(rows[0])
}

export async function countOwn(tx: ReadTx, userId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`select control.count_projects(${userId}) as count`.execute(tx)
  return rows[0]?.count ?? 0
}

/** The projects that the user is a member of, with the user's role, newest first. */
export async function listOfUser(
  tx: ReadTx,
  userId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
): Promise<(ProjectRow & { role: string })[]> {
  const { rows } = await sql<FlatRow & { role: string }>`
    select ${fields}, members.role from control.members as members
      join control.projects as projects on projects.id = members.project_id ${companions}
     where members.user_id = ${userId} and members.project_id < ${beforeId}
     order by members.project_id desc limit ${limit}`.execute(tx)
  return rows.map(({ role, ...row }) => ({ ...rowOf(row), role }))
}

export interface Remains {
  domains: boolean
  endpoints: boolean
  routes: boolean
  apiKeys: boolean
  identities: boolean
}

export async function remains(tx: ReadTx, id: number): Promise<Remains> {
  const { rows } = await sql<Remains>`
    select exists (select from control.domains where project_id = ${id}) as domains,
           exists (select from control.endpoints where project_id = ${id}) as endpoints,
           exists (select from control.routes where project_id = ${id}) as routes,
           exists (select from control.api_keys where project_id = ${id}) as "apiKeys",
           exists (select from control.identities where project_id = ${id} and state <> 'retired') as identities`.execute(
    tx,
  )
  return one(rows)
}

/** Runs in the mail database. */
export async function hasMailWaiting(mail: ReadTx, id: number): Promise<boolean> {
  const { rows } = await sql`
    select from mail.dispatch
     where shard = postern.shard_of(${id}) and project_id = ${id} limit 1`.execute(mail)
  return rows.length > 0
}

/** Deletes the transaction's project. */
export async function removeOwn(tx: Tx): Promise<void> {
  await sql`select control.delete_project()`.execute(tx)
}
