import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { InterventionEnd, InterventionKind } from './wire.ts'

type Stored = Selectable<Schema['control.interventions']>

export interface InterventionRow extends Omit<Stored, 'kind' | 'source' | 'ended_by' | 'evidence'> {
  kind: InterventionKind
  source: 'administrator' | 'policy'
  ended_by: InterventionEnd | null
  evidence: Record<string, unknown> | null
  starter_email: string | null
  /** `created_at` is RFC 3339, with the database's precision. */
  appeal: { text: string; user_id: number; created_at: string } | null
}

export interface NewIntervention {
  kind: InterventionKind
  started_by: number | null
  reason: string
  public_note: string | null
  pace_per_hour: number | null
  expires_at: Date | null
  /** Only for a gradual release. */
  drains_before?: Date | null
  /** Null for an administrator and for a command on the server. */
  policy?: { id: number; evidence: object } | null
}

/** Every column of control.interventions, the administrator's address and the appeal. */
const columns = sql`interventions.*,
  (select email from control.users where id = interventions.started_by) as starter_email,
  (select json_build_object('text', text, 'user_id', user_id, 'created_at', created_at)
     from control.appeals where intervention_id = interventions.id) as appeal`

const one = (rows: InterventionRow[]): InterventionRow => {
  const [row] = rows
  if (!row) throw new Error('the statement returned no intervention')
  return row
}

export async function insert(tx: Tx, projectId: number, wanted: NewIntervention): Promise<InterventionRow> {
  const { kind, started_by, reason, public_note, pace_per_hour, expires_at } = wanted
  const { drains_before = null, policy = null } = wanted
  const { rows } = await sql<InterventionRow>`
    insert into control.interventions (project_id, kind, source, policy_id, started_by, reason, public_note, pace_per_hour,
                                       evidence, expires_at, drains_before)
    values (${projectId}, ${kind}, ${policy ? 'policy' : 'administrator'}, ${policy?.id ?? null}, ${started_by}, ${reason},
            ${public_note}, ${pace_per_hour}, ${policy && JSON.stringify(policy.evidence)}, ${expires_at}, ${drains_before})
    returning ${columns}`.execute(tx)
  return one(rows)
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<InterventionRow | undefined> {
  const { rows } = await sql<InterventionRow>`
    select ${columns} from control.interventions where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

export async function listByProject(
  tx: ReadTx,
  projectId: number,
  { limit, beforeId, inForce }: { limit: number; beforeId: number; inForce: boolean },
): Promise<InterventionRow[]> {
  const { rows } = await sql<InterventionRow>`
    select ${columns} from control.interventions
     where project_id = ${projectId} and id < ${beforeId} ${inForce ? sql`and ended_at is null` : sql``}
     order by id desc limit ${limit}`.execute(tx)
  return rows
}

/** In the order in which they began. The caller holds the project's lock. */
export async function listInForce(tx: ReadTx, projectId: number): Promise<InterventionRow[]> {
  const { rows } = await sql<InterventionRow>`
    select ${columns} from control.interventions
     where project_id = ${projectId} and ended_at is null order by id`.execute(tx)
  return rows
}

/** Interventions that were in force at some time in the range, in the order in which they began. */
export async function listWithin(
  tx: ReadTx,
  projectId: number,
  { from, to, afterId, limit }: { from: Date; to: Date; afterId: number; limit: number },
): Promise<InterventionRow[]> {
  const { rows } = await sql<InterventionRow>`
    select ${columns} from control.interventions
     where project_id = ${projectId} and id > ${afterId} and created_at < ${to}
       and (ended_at is null or ended_at >= ${from})
     order by id limit ${limit}`.execute(tx)
  return rows
}

export async function update(
  tx: Tx,
  { project_id, id }: InterventionRow,
  {
    pace_per_hour,
    public_note,
    expires_at,
  }: Pick<NewIntervention, 'pace_per_hour' | 'public_note' | 'expires_at'>,
): Promise<InterventionRow> {
  const { rows } = await sql<InterventionRow>`
    update control.interventions
       set pace_per_hour = ${pace_per_hour}, public_note = ${public_note}, expires_at = ${expires_at},
           version = version + 1, updated_at = postern.now()
     where project_id = ${project_id} and id = ${id} returning ${columns}`.execute(tx)
  return one(rows)
}

export async function end(
  tx: Tx,
  projectId: number,
  ids: readonly number[],
  endedBy: InterventionEnd,
): Promise<InterventionRow[]> {
  const { rows } = await sql<InterventionRow>`
    update control.interventions
       set ended_at = postern.now(), ended_by = ${endedBy}, version = version + 1, updated_at = postern.now()
     where project_id = ${projectId} and id = any(${ids}) and ended_at is null
    returning ${columns}`.execute(tx)
  return rows.toSorted((one, other) => one.id - other.id)
}

/** Policies do not evaluate mail that was accepted before. Workers read it when they count. */
export async function writeRestrictionEnd(tx: Tx, projectId: number, at: Date): Promise<void> {
  await sql`
    insert into control.restriction_ends as existing (project_id, ended_at) values (${projectId}, ${at})
    on conflict (project_id) do update set ended_at = greatest(existing.ended_at, excluded.ended_at)`.execute(
    tx,
  )
}

/** Moves the project's version only if the value changes. */
export async function writeLocked(
  tx: Tx,
  { id, version }: { id: number; version: number },
  isLocked: boolean,
): Promise<void> {
  await sql`
    update control.projects
       set is_locked = ${isLocked}, version = ${version + 1}, updated_at = postern.now()
     where id = ${id}`.execute(tx)
}

export async function writeRestriction(
  tx: Tx,
  projectId: number,
  { kind, pace_per_hour, since }: { kind: 'pace' | 'hold'; pace_per_hour: number | null; since: Date },
): Promise<void> {
  await sql`
    insert into control.queue_restrictions as existing (project_id, kind, pace_per_hour, since)
    values (${projectId}, ${kind}, ${pace_per_hour}, ${since})
    on conflict (project_id) do update
      set kind = excluded.kind, pace_per_hour = excluded.pace_per_hour, since = excluded.since
      where (existing.kind, existing.pace_per_hour, existing.since)
            is distinct from (excluded.kind, excluded.pace_per_hour, excluded.since)`.execute(tx)
}

export async function deleteRestriction(tx: Tx, projectId: number): Promise<void> {
  await sql`delete from control.queue_restrictions where project_id = ${projectId}`.execute(tx)
}

/** Gradual releases, the oldest first. */
export async function listDraining(
  tx: ReadTx,
): Promise<{ id: number; project_id: number; drains_before: Date }[]> {
  const { rows } = await sql<{ id: number; project_id: number; drains_before: Date }>`
    select id, project_id, drains_before from control.interventions
     where ended_at is null and drains_before is not null order by id`.execute(tx)
  return rows
}

/** Interventions whose time is over, the earliest first. */
export async function listExpired(tx: ReadTx, limit: number): Promise<{ id: number; project_id: number }[]> {
  const { rows } = await sql<{ id: number; project_id: number }>`
    select id, project_id from control.interventions
     where ended_at is null and expires_at <= postern.now() order by expires_at limit ${limit}`.execute(tx)
  return rows
}
