import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { PolicyRow } from './policies.sql.ts'
import type { Candidate } from './signals.sql.ts'

/** The ends of the last bucket that was evaluated, null for none, and of the last one that can be evaluated. */
export async function findProgress(
  tx: ReadTx,
  cell: string,
  settlingMs: number,
): Promise<{ evaluated_until: Date | null; closed_until: Date; has_policies: boolean }> {
  const { rows } = await sql<{ evaluated_until: Date | null; closed_until: Date; has_policies: boolean }>`
    select (select evaluated_until from control.policy_progress where cell = ${cell}) as evaluated_until,
           date_bin('5 minutes', postern.now() - ${settlingMs} * interval '1 millisecond', 'epoch') as closed_until,
           exists (select from control.policies where mode <> 'off') as has_policies`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the database returned no row')
  return row
}

/** Returns whether the row was at `before`. Locks it until the transaction ends. */
export async function moveProgress(
  tx: Tx,
  cell: string,
  { before, after, active }: { before: Date | null; after: Date; active: number },
): Promise<boolean> {
  const { rows } = await sql`
    insert into control.policy_progress as progress (cell, evaluated_until, active_projects)
    values (${cell}, ${after}, ${active})
    on conflict (cell) do update set evaluated_until = excluded.evaluated_until, active_projects = excluded.active_projects
      where progress.evaluated_until is not distinct from ${before}::timestamptz
    returning true`.execute(tx)
  return rows.length === 1
}

/** Deletes the progress of cells that no longer exist. */
export async function deleteOtherProgress(tx: Tx, cells: readonly string[]): Promise<void> {
  await sql`delete from control.policy_progress where cell <> all(${cells}::text[])`.execute(tx)
}

/** The number of active projects in all cells that are evaluated at about this time. */
export async function sumActive(tx: ReadTx, at: Date): Promise<number> {
  const { rows } = await sql<{ active: number }>`
    select coalesce(sum(active_projects), 0)::int as active from control.policy_progress
     where evaluated_until > ${at}::timestamptz - interval '1 hour'`.execute(tx)
  return rows[0]?.active ?? 0
}

/** The policies that are evaluated. */
export async function listEvaluated(tx: ReadTx): Promise<PolicyRow[]> {
  const { rows } = await sql<PolicyRow>`
    select * from control.policies where mode <> 'off' order by id`.execute(tx)
  return rows
}

/**
 * The projects that the policy has acted on in the hour up to `at`, and in the last hour: after an interruption, many hours
 * are evaluated at once.
 */
export async function listActedOn(tx: ReadTx, policyId: number, at: Date): Promise<Set<number>> {
  const { rows } = await sql<{ project_id: number }>`
    select project_id from control.firings
     where policy_id = ${policyId} and at > ${at}::timestamptz - interval '1 hour' and outcome in ('pending', 'enforced')
    union
    select project_id from control.firings
     where policy_id = ${policyId} and created_at > postern.now() - interval '1 hour'
       and outcome in ('pending', 'enforced')`.execute(tx)
  return new Set(rows.map(({ project_id }) => project_id))
}

export async function insertFirings(
  tx: Tx,
  { id, version }: PolicyRow,
  firings: readonly (Candidate & { outcome: 'recorded' | 'pending' })[],
): Promise<void> {
  const each = <T>(value: (firing: (typeof firings)[number]) => T): T[] => firings.map(value)
  await sql`
    insert into control.firings (policy_id, policy_version, project_id, at, value, counted, baseline, outcome)
    select ${id}, ${version}, * from unnest(
      ${each(({ project_id }) => project_id)}::bigint[], ${each(({ at }) => at)}::timestamptz[],
      ${each(({ value }) => value)}::float8[], ${each(({ counted }) => counted)}::bigint[],
      ${each(({ baseline }) => baseline)}::float8[], ${each(({ outcome }) => outcome)}::text[])`.execute(tx)
}

export async function listPending(
  tx: ReadTx,
  { afterId, limit }: { afterId: number; limit: number },
): Promise<{ id: number; project_id: number }[]> {
  const { rows } = await sql<{ id: number; project_id: number }>`
    select id, project_id from control.firings
     where outcome = 'pending' and id > ${afterId} order by id limit ${limit}`.execute(tx)
  return rows
}

export interface PendingFiring {
  id: number
  policy_id: number
  policy_version: number
  project_id: number
  at: Date
  value: number
  counted: number
  baseline: number
  /** It was recorded more than an hour ago. */
  is_old: boolean
}

export async function lockPending(tx: Tx, id: number): Promise<PendingFiring | undefined> {
  const { rows } = await sql<PendingFiring>`
    select id, policy_id, policy_version, project_id, at, value, counted, baseline,
           created_at < postern.now() - interval '1 hour' as is_old
      from control.firings where id = ${id} and outcome = 'pending' for update`.execute(tx)
  return rows[0]
}

/** Keeps the policy as it is until the transaction ends. */
export async function sharePolicy(tx: Tx, id: number): Promise<PolicyRow> {
  const { rows } = await sql<PolicyRow>`
    select * from control.policies where id = ${id} for share`.execute(tx)
  const [row] = rows
  // A firing is deleted with its policy.
  if (!row) throw new Error(`policy ${id} does not exist`)
  return row
}

export async function writeOutcome(tx: Tx, id: number, interventionId: number | null): Promise<void> {
  await sql`
    update control.firings
       set outcome = ${interventionId === null ? 'skipped' : 'enforced'}, intervention_id = ${interventionId}
     where id = ${id}`.execute(tx)
}
