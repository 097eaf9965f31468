import assert from 'node:assert/strict'
import { withAddresses } from '../../core/control/audit/addresses.ts'
import type { Answer } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'

export interface RecordedAuditRow {
  operation: string
  actor_kind: string
  actor_id: number
  project_id: number | null
  reason: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  related: object[] | null
  limit_exception: { limit: string; value: number; count: number } | null
}

/** The audit row that the request wrote, if any. */
export async function auditRowOf(
  database: TestDatabase,
  { headers }: Answer,
): Promise<RecordedAuditRow | undefined> {
  const rows = await database.query<{ row: RecordedAuditRow; addresses: Addresses }>(
    `select to_jsonb(audit) as row, ${addressesBeside} as addresses from control.audit where request_id = $1`,
    [headers.get('x-request-id')],
  )
  assert.ok(rows.length <= 1, `this request has ${rows.length} audit rows`)
  const [found] = rows
  return found && withAuditAddresses({ ...found.row, addresses: found.addresses })
}

type Addresses = Record<string, string | null>

/** The addresses that belong to a `control.audit` row, keyed by field path. */
export const addressesBeside = `(select coalesce(json_object_agg(part, coalesce(email, name)), '{}') from control.audit_people
  where audit_id = audit.id and part not in ('actor', 'subject'))`

/** The row with its addresses, in the form that the API returns. */
export function withAuditAddresses<Row extends { addresses: Addresses }>({
  addresses,
  ...row
}: Row): Omit<Row, 'addresses'> {
  const known = new Map(Object.entries(addresses))
  const fields = Object.entries(row).map(([name, value]) => [
    name,
    ['before', 'after', 'related'].includes(name) ? withAddresses(value, name, known) : value,
  ])
  return Object.fromEntries(fields)
}
