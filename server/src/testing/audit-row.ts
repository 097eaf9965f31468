import assert from 'node:assert/strict'
import type { Answer } from './client.ts'
import type { TestDatabase } from './database.ts'

export interface AuditRow {
  operation: string
  actor_id: number
  project_id: number | null
  reason: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  related: object[] | null
  limit_exception: { limit: string; value: number; count: number } | null
}

/** What the answered request left in the audit, to look into: no row, or one. */
export async function auditRowOf(database: TestDatabase, { headers }: Answer): Promise<AuditRow | undefined> {
  const rows = await database.query<{ row: AuditRow }>(
    'select to_json(audit) as row from control.audit where request_id = $1',
    [headers.get('x-request-id')],
  )
  assert.ok(rows.length <= 1, `this request has ${rows.length} audit rows`)
  return rows[0]?.row
}
