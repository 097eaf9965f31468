/**
 * Temporary overrides of a project's fields. The field itself has the temporary value; a reversal is the row that says what
 * it returns to, and when. Every later change of the field deletes the reversal in the same transaction, so that nobody's
 * decision is undone by an older one. Every caller that writes holds the lock on the project.
 */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { Change } from '../audit/record.ts'
import {
  type FieldValue,
  find,
  listByProject,
  type ReversalRow,
  remove,
  setAuditId,
  upsert,
} from './reversals.sql.ts'
import { type Reversal, type TemporaryField, temporaryFields } from './wire.ts'

export type { FieldValue, ReversalRow }

export const listReversals = listByProject

export const reversalView = (row: ReversalRow): Static<typeof Reversal> => ({
  id: row.id,
  project_id: row.project_id,
  field: row.field,
  original: row.original,
  override: row.override,
  expires_at: row.expires_at.toISOString(),
  audit_id: row.audit_id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

export async function findReversal(tx: ReadTx, projectId: number, id: number): Promise<ReversalRow> {
  const row = await find(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no reversal ${id} in project ${projectId}.`)
  return row
}

/** A reversal before and after an edit; null if there is none. */
export interface ReversalChange {
  before: ReversalRow | null
  after: ReversalRow | null
}

/** A project's temporary fields, in the form in which reversals store them. */
export type TemporaryValues = Record<TemporaryField, FieldValue>

/**
 * Updates the reversals after an edit. `named` are the fields in the request. With `expiresAt`, each field that got another
 * value gets a reversal, and the reversal of an unchanged one is moved to that time. Without it, the reversals of all named
 * fields are deleted: a value that is sent without an expiry is permanent.
 */
export async function planReversals(
  tx: Tx,
  projectId: number,
  {
    before,
    after,
    named,
    expiresAt,
  }: { before: TemporaryValues; after: TemporaryValues; named: readonly string[]; expiresAt: Date | null },
): Promise<ReversalChange[]> {
  const fields = temporaryFields.filter((field) => named.includes(field))
  if (fields.length === 0) return []
  const existing = await listByProject(tx, projectId)
  const changes: ReversalChange[] = []
  for (const field of fields) {
    const prior = existing.find((row) => row.field === field)
    const original = prior ? prior.original : before[field]
    const isChanged = before[field] !== after[field]
    if (!isChanged && !prior) continue
    if (expiresAt === null || original === after[field]) {
      if (prior) {
        await remove(tx, projectId, [prior.id])
        changes.push({ before: prior, after: null })
      }
      continue
    }
    if (!isChanged && prior?.expires_at.getTime() === expiresAt.getTime()) continue
    const row = await upsert(tx, projectId, {
      field,
      original,
      override: after[field],
      expires_at: expiresAt,
    })
    changes.push({ before: prior ?? null, after: row })
  }
  return changes
}

/** Stores the id of the audit row that contains the changes. */
export async function nameAuditEntry(
  tx: Tx,
  projectId: number,
  changes: readonly ReversalChange[],
  auditId: number,
): Promise<void> {
  const ids = changes.flatMap(({ after }) => (after ? [after.id] : []))
  if (ids.length > 0) await setAuditId(tx, projectId, ids, auditId)
}

export async function deleteReversal(tx: Tx, row: ReversalRow): Promise<Change> {
  await remove(tx, row.project_id, [row.id])
  return reversalChange({ before: row, after: null })
}

export function reversalChange({ before, after }: ReversalChange): Change {
  const id = after?.id ?? before?.id
  if (id === undefined) throw new Error('a change needs a reversal')
  return { resource: 'reversal', id, before: before && record(before), after: after && record(after) }
}

const record = ({ field, original, override, expires_at }: ReversalRow) => ({
  ...{ field, original, override, expires_at: expires_at.toISOString() },
})
