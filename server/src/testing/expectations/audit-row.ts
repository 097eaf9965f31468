import assert from 'node:assert/strict'
import { withAddresses } from '../../core/control/audit/addresses.ts'
import type { Answer } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'

export interface RecordedAuditRow {
  operation: string
  actor_id: number
  project_id: number | null
  reason: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  related: object[] | null
  limit_exception: { limit: string; value: number; count: number } | null
}

/** The audit row of the request, if it wrote one. */
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

/** The addresses of a row of `control.audit`, by the paths of their fields. */
export const addressesBeside = `(select coalesce(json_object_agg(part, email), '{}') from control.audit_people
  where audit_id = audit.id and part not in ('actor', 'subject'))`

/** The row with its addresses, as the API returns it. */
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
