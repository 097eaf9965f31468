import { randomUUIDv7 } from 'node:crypto'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { recordAudit, system } from '../audit/record.ts'
import type { SystemOperation } from '../audit/unattended-operations.ts'
import { lockProject, projectChange, restoreField, temporaryValues } from '../projects/projects.ts'
import { find, isDue, listDue } from './reversals.sql.ts'
import { deleteReversal, type ReversalRow } from './reversals.ts'

const revertOperation: SystemOperation = 'projects.revert'
const revertedAtOnce = 100

/**
 * Restores the original values of temporary overrides that have expired, each in its own transaction with its audit row.
 * Any number of workers can do this concurrently. Returns how many it handled.
 */
export async function revertDue(db: UnscopedDb, signal?: AbortSignal): Promise<number> {
  let reverted = 0
  for (;;) {
    const rows = await db.readOne((tx) => listDue(tx, revertedAtOnce))
    let failure: unknown
    for (const { project_id, id } of rows) {
      if (signal?.aborted) return reverted
      try {
        if (await db.transaction((tx) => revertIfDue(tx, project_id, id))) reverted++
      } catch (error) {
        // A failure for one project does not delay the others.
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
    if (rows.length < revertedAtOnce) return reverted
  }
}

async function revertIfDue(tx: Tx, projectId: number, id: number): Promise<boolean> {
  // Deleted with its project, or reverted by another worker.
  if (!(await find(tx, projectId, id))) return false
  const before = await lockProject(tx, projectId)
  const row = await find(tx, projectId, id)
  if (!row || !(await isDue(tx, row))) return false
  const deleted = await deleteReversal(tx, row)
  // Every edit of the field deletes the reversal, so the values differ only if something else wrote the field.
  const isUnchanged = temporaryValues(before)[row.field] === row.override
  const after = isUnchanged ? await restoreField(tx, before, row.field, row.original) : before
  const changes = [...(isUnchanged ? [projectChange(before, after)] : []), deleted]
  const [change, ...related] = changes
  if (!change) throw new Error('a reversal changes something')
  await recordAudit(tx, {
    actor: system,
    requestId: randomUUIDv7(),
    operation: revertOperation,
    projectId,
    change,
    related,
    reason: reasonOf(row, isUnchanged),
    limitException: null,
    subject: null,
  })
  return true
}

const reasonOf = ({ field, audit_id, expires_at }: ReversalRow, isUnchanged: boolean): string =>
  isUnchanged
    ? `The temporary ${field} of audit entry ${audit_id} expired at ${expires_at.toISOString()}.`
    : `The temporary ${field} of audit entry ${audit_id} expired, but the value has changed and is kept.`
