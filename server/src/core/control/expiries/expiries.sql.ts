import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'

export interface Due {
  interventions: boolean
  reversals: boolean
  /** Whether gradual releases are in force. */
  drains: boolean
  /** Whether discards are running. */
  discards: boolean
  /** Whether bulk actions are running. */
  bulkActions: boolean
}

/** One statement, because an idle worker executes it every few seconds. */
export async function findDue(tx: ReadTx): Promise<Due> {
  const { rows } = await sql<Due>`
    select exists (select from control.interventions
                    where ended_at is null and expires_at <= postern.now()) as interventions,
           exists (select from control.reversals where expires_at <= postern.now()) as reversals,
           exists (select from control.interventions
                    where ended_at is null and drains_before is not null) as drains,
           exists (select from control.discards where stopped_at is null and finished_at is null) as discards,
           exists (select from control.bulk_actions
                    where stopped_at is null and finished_at is null) as "bulkActions"`.execute(tx)
  const [due] = rows
  if (!due) throw new Error('the database returned no row')
  return due
}
