import type { Tx } from '../../../platform/db/db.ts'
import { eraseFromActivity } from '../activity/activity.ts'
import type { RowContent } from './chain.ts'
import { deletePerson } from './people.sql.ts'
import { recordAudit, shell } from './record.ts'

/** How many times it was, is in the row that records it: verification counts what is missing against that. */
const operation = 'audit.erase'

/**
 * Forgets who somebody was: the personal data kept under the address, as actor and as the one acted upon. The
 * audit rows stay, with the user's id and the digests, which tell nothing without their salt. Returns how
 * many times the person was in it; if ever, the erasure is recorded.
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
    // Whom it was about is what has just been forgotten.
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

/** How many times somebody was erased, by a row that records an erasure; 0 for any other. */
export function recordedErasure(row: Pick<RowContent, 'operation' | 'after'>): number {
  if (row.operation !== operation) return 0
  const { rows } = (row.after ?? {}) as { rows?: unknown }
  return typeof rows === 'number' ? rows : 0
}
