import type { Tx } from '../../../platform/db/db.ts'
import { eraseFromActivity } from '../activity/activity.ts'
import type { RowContent } from './chain.ts'
import { deletePerson, eraseFromLookups } from './erasure.sql.ts'
import { recordAudit, shell } from './record.ts'
import type { ShellOperation } from './unattended-operations.ts'

/** The row records the number of erased entries. Verification compares it with the number of missing entries. */
const operation = 'audit.erase' satisfies ShellOperation

/**
 * Erases the personal data stored for an address, both as actor and as subject. Audit rows keep the user's id and the
 * digests. Without their salts, the digests reveal nothing. Returns the number of erased entries. Records the erasure if
 * there were any.
 */
export async function erasePerson(
  tx: Tx,
  { email, requestId, reason }: { email: string; requestId: string; reason: string },
): Promise<number> {
  const rows = await deletePerson(tx, email.toLowerCase())
  const activity = await eraseFromActivity(tx, email)
  const lookups = await eraseFromLookups(tx, email.toLowerCase())
  const erased = rows + activity + lookups
  if (erased === 0) return 0
  await recordAudit(tx, {
    actor: shell('postern audit erase'),
    requestId,
    operation,
    projectId: null,
    // The address is omitted, because it was just erased.
    change: {
      resource: 'person',
      id: requestId,
      before: null,
      after: { rows, ...(activity > 0 && { activity }), ...(lookups > 0 && { lookups }) },
    },
    related: [],
    reason,
    limitException: null,
    subject: null,
  })
  return erased
}

/** The number of erased entries that the row records, or 0 for other operations. */
export function recordedErasure(row: Pick<RowContent, 'operation' | 'after'>): number {
  if (row.operation !== operation) return 0
  const { rows } = (row.after ?? {}) as { rows?: unknown }
  return typeof rows === 'number' ? rows : 0
}
