import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { TemporaryField } from './wire.ts'

export type FieldValue = number | boolean | string | null

export interface ReversalRow {
  id: number
  project_id: number
  field: TemporaryField
  original: FieldValue
  override: FieldValue
  expires_at: Date
  audit_id: number | null
  version: number
  created_at: Date
  updated_at: Date
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<ReversalRow | undefined> {
  const { rows } = await sql<ReversalRow>`
    select * from control.reversals where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

/** At most one row for each field. */
export async function listByProject(tx: ReadTx, projectId: number): Promise<ReversalRow[]> {
  const { rows } = await sql<ReversalRow>`
    select * from control.reversals where project_id = ${projectId} order by id`.execute(tx)
  return rows
}

export async function upsert(
  tx: Tx,
  projectId: number,
  {
    field,
    original,
    override,
    expires_at,
  }: Pick<ReversalRow, 'field' | 'original' | 'override' | 'expires_at'>,
): Promise<ReversalRow> {
  const { rows } = await sql<ReversalRow>`
    insert into control.reversals as existing (project_id, field, original, override, expires_at)
    values (${projectId}, ${field}, ${JSON.stringify(original)}::jsonb, ${JSON.stringify(override)}::jsonb, ${expires_at})
    on conflict (project_id, field) do update
      set override = excluded.override, expires_at = excluded.expires_at, version = existing.version + 1,
          updated_at = postern.now()
    returning *`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the statement returned no reversal')
  return row
}

export async function setAuditId(
  tx: Tx,
  projectId: number,
  ids: readonly number[],
  auditId: number,
): Promise<void> {
  await sql`
    update control.reversals set audit_id = ${auditId}
     where project_id = ${projectId} and id = any(${ids})`.execute(tx)
}

export async function remove(tx: Tx, projectId: number, ids: readonly number[]): Promise<void> {
  await sql`delete from control.reversals where project_id = ${projectId} and id = any(${ids})`.execute(tx)
}

/** Reversals whose time has come, the earliest first. */
export async function listDue(tx: ReadTx, limit: number): Promise<{ id: number; project_id: number }[]> {
  const { rows } = await sql<{ id: number; project_id: number }>`
    select id, project_id from control.reversals
     where expires_at <= postern.now() order by expires_at limit ${limit}`.execute(tx)
  return rows
}

export async function isDue(tx: ReadTx, { id }: ReversalRow): Promise<boolean> {
  const { rows } = await sql`
    select from control.reversals where id = ${id} and expires_at <= postern.now()`.execute(tx)
  return rows.length > 0
}
