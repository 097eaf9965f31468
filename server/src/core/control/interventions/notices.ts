import type { Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { listPublicRows } from './notices.sql.ts'
import type { PublicIntervention } from './wire.ts'

/** The interventions in force as the project's members see them: without reasons and names of administrators. */
export const listPublicInForce = async (
  tx: ReadTx,
  projectId: number,
): Promise<Static<typeof PublicIntervention>[]> =>
  (await listPublicRows(tx, projectId)).map(({ created_at, expires_at, ...row }) => ({
    ...row,
    expires_at: expires_at?.toISOString() ?? null,
    created_at: created_at.toISOString(),
  }))
