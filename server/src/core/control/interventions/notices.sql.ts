import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { InterventionKind } from './wire.ts'

/** Customers' role can read only these columns. */
export interface PublicRow {
  id: number
  kind: InterventionKind
  public_note: string | null
  pace_per_hour: number | null
  expires_at: Date | null
  created_at: Date
}

export async function listPublicRows(tx: ReadTx, projectId: number): Promise<PublicRow[]> {
  const { rows } = await sql<PublicRow>`
    select id, kind, public_note, pace_per_hour, expires_at, created_at from control.interventions
     where project_id = ${projectId} and ended_at is null order by id`.execute(tx)
  return rows
}
