import type { Tx } from '../../../platform/db/db.ts'
import { eraseFromActivity } from '../activity/activity.ts'
import type { RowContent } from './chain.ts'
import { deletePerson } from './erasure.sql.ts'
import { recordAudit, shell } from './record.ts'

/** Its row records how many entries were erased. Verification compares that with what is missing. */
const operation = 'audit.erase'

/**
 * Erases the personal data of an address, as actor and as subject. Audit rows stay, with the user's id and the digests,
 * which reveal nothing without their salt. Returns the number of erased entries; if there were any, records the erasure.
 */
export async function erasePerson(
  tx: Tx,
  { email, requestId, reason }: { email: string; requestId: string; reason: string },
): Promise<number> {
  const rows = await deletePerson(tx, email.toLowerCase())
  const activity = await eraseFromActivity(tx, email)
  if (rows + activity === 0) return 0
  await recordAudit(tx, {
    actor: shell('postern audit erase'),
    requestId,
    operation,
    projectId: null,
    // Without the address, which has just been erased.
    change: {
      resource: 'person',
      id: requestId,
      before: null,
      after: activity === 0 ? { rows } : { rows, activity },
    },
    related: [],
    reason,
    limitException: null,
    subject: null,
  })
  return rows + activity
}

/** The number of erased entries that the row records; 0 for rows of other operations. */
export function recordedErasure(row: Pick<RowContent, 'operation' | 'after'>): number {
  if (row.operation !== operation) return 0
  const { rows } = (row.after ?? {}) as { rows?: unknown }
  return typeof rows === 'number' ? rows : 0
}
