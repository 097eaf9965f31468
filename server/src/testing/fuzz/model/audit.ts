import { settable } from './settle.ts'
import { anId, anything, aText, aTime, differences, Unknown } from './unknown.ts'
import type { AuditedAct, View } from './world.ts'

const aHash = aText(/^[0-9a-f]{64}$/)
const aPlace = new Unknown('a place in the chain', (value) => Number.isInteger(value) && Number(value) > 0)

/** The rows that a list of the audit gave, newest first, against the acts in their order. */
export function auditFaults(
  rows: readonly View[],
  acts: readonly AuditedAct[],
  { projectId, actor }: { projectId: number | null; actor: { id: number; email: string } },
): string[] {
  if (rows.length !== acts.length) {
    const told = rows.map((row) => `${row['operation']} ${row['resource_type']}:${row['resource_id']}`)
    return [
      `the audit has ${rows.length} rows for ${acts.length} acts: ${told.reverse().join(', ').slice(0, 2000)}`,
    ]
  }
  return acts.toReversed().flatMap((act, n) => {
    const row = rows[n] ?? {}
    return [
      ...differences(expectedRow(act, projectId, actor), row, `audit[${n}]`),
      ...limitFaults(act, row, `audit[${n}] of ${act.operation}`),
      ...valueFaults(act, row, `audit[${n}] of ${act.operation}`),
      ...(projectId === null ? [] : chainFaults(rows, n)),
    ]
  })
}

const expectedRow = (
  act: AuditedAct,
  projectId: number | null,
  actor: { id: number; email: string },
): View => ({
  id: anId,
  chain: projectId ?? 0,
  seq: aPlace,
  at: aTime,
  actor: { id: actor.id, email: actor.email, ip: '127.0.0.1', user_agent: anything },
  request_id: act.requestId,
  operation: act.operation,
  project_id: projectId,
  resource_type: act.type,
  resource_id: String(act.id),
  reason: act.reason,
  before: anything,
  after: anything,
  // A project's beginning and its transfer also make and move members.
  related: act.type === 'project' || act.type === 'domain' ? anything : [],
  limit_exception: anything,
  subject: anything,
  prev_hash: aHash,
  hash: aHash,
})

/** Its members have no order of their own. */
function limitFaults({ limit }: AuditedAct, row: View, at: string): string[] {
  const told = row['limit_exception'] as View | null
  if (limit === null || told === null) return differences(limit, told, `${at}: limit_exception`)
  const { limit: name, value, count } = told
  return differences({ ...limit }, { limit: name, value, count }, `${at}: limit_exception`)
}

/** What could be set is in the row as it was and as it became. */
function valueFaults(act: AuditedAct, row: View, at: string): string[] {
  const fields = settable[act.type] ?? []
  return (['before', 'after'] as const).flatMap((side) => {
    const told = row[side] as View | null
    const known = act[side]
    if (known === null || told === null) {
      return known === told ? [] : [`${at}: ${side} is ${JSON.stringify(told)}`]
    }
    return fields.flatMap((field) => differences(known[field], told[field], `${at}: ${side}.${field}`))
  })
}

/** Each row holds the hash of the one before, and the first has none before it. */
function chainFaults(rows: readonly View[], n: number): string[] {
  const [row, older] = [rows[n], rows[n + 1]]
  if (row?.['seq'] !== rows.length - n) return [`audit[${n}] has the place ${row?.['seq']} of ${rows.length}`]
  return older && row['prev_hash'] !== older['hash'] ? [`audit[${n}] does not follow the row before it`] : []
}
