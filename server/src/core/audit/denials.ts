import type { ReadTx, Tx } from '../../platform/db/db.ts'
import { type Denial, deleteOldDenials, selectDenials, upsertDenial } from './denials.sql.ts'

/**
 * Refusals of signed-in users: counted per actor, operation, error, project and minute, so that somebody who
 * hammers at a door fills no table. Not chained, and gone after 90 days.
 */
const keptDays = 90

export const countDenial = (tx: Tx, denial: Denial): Promise<void> => upsertDenial(tx, denial)

export type DenialRow = Awaited<ReturnType<typeof selectDenials>>[number]

/** Newest first. */
export const listDenials = (
  tx: ReadTx,
  query: { actorId?: number | undefined; limit: number; beforeId?: number | undefined },
): Promise<DenialRow[]> => selectDenials(tx, query)

export const denialView = (row: DenialRow) => ({
  id: row.id,
  minute: row.minute.toISOString(),
  actor_id: row.actor_id,
  operation: row.operation,
  error: row.error,
  project_id: row.project_id,
  count: row.count,
  last_request_id: row.last_request_id,
})

/** How many rows went. */
export const purgeDenials = (tx: Tx): Promise<number> => deleteOldDenials(tx, keptDays)
