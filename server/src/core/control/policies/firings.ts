/** Firings: the times at which a policy fired for a project, with the figures. Kept for 90 days. */
import type { Static } from 'typebox'
import type { OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { countCap } from '../../shared/counts.ts'
import { countOfPolicy, deleteOld, type FiringRow, list } from './firings.sql.ts'
import type { Firing } from './wire.ts'

export type { FiringRow }

export const firingView = (row: FiringRow): Static<typeof Firing> => ({
  id: row.id,
  policy_id: row.policy_id,
  policy_version: row.policy_version,
  project_id: row.project_id,
  at: row.at.toISOString(),
  value: row.value,
  counted: row.counted,
  baseline: row.baseline,
  outcome: row.outcome,
  intervention_id: row.intervention_id,
  created_at: row.created_at.toISOString(),
})

/** Newest first. */
export const listFirings = list

export const countFirings = (tx: ReadTx, policyId: number): Promise<number> =>
  countOfPolicy(tx, policyId, countCap + 1)

const keptDays = 90

/** Returns the number of deleted rows. */
export const purgeFirings = (tx: OneStatement): Promise<number> => deleteOld(tx, keptDays, purgedAtOnce)
