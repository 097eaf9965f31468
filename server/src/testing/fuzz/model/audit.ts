import { settable } from './apply-response.ts'
import { anId, anything, aText, aTime, differences, Unknown } from './unknown.ts'
import { type AuditedAct, idOf, type View } from './world.ts'

const aHash = aText(/^[0-9a-f]{64}$/)
const aSequenceNumber = new Unknown(
  'a sequence number',
  (value) => Number.isInteger(value) && Number(value) > 0,
)

/** Compares audit rows, newest first, with the expected acts, oldest first. */
export function auditFaults(
  rows: readonly View[],
  acts: readonly AuditedAct[],
  { projectId, actor }: { projectId: number | null; actor: { id: number; email: string } },
): string[] {
  if (rows.length !== acts.length) {
    const actual = rows.map((row) => `${row['operation']} ${row['resource_type']}:${row['resource_id']}`)
    return [
      `expected ${acts.length} audit rows, got ${rows.length}: ${actual.reverse().join(', ').slice(0, 2000)}`,
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
  seq: aSequenceNumber,
  at: aTime,
  actor_kind: 'person',
  actor: { id: actor.id, email: actor.email, ip: '127.0.0.1', user_agent: anything },
  request_id: act.requestId,
  operation: act.operation,
  project_id: projectId,
  resource_type: act.type,
  resource_id: String(idOf(act)),
  reason: act.reason,
  before: anything,
  after: anything,
  // Transferring a project also changes members; locking and holding also change interventions.
  related: ['project', 'domain', 'queue', 'intervention'].includes(act.type) ? anything : [],
  limit_exception: anything,
  bulk_id: null,
  subject: anything,
  prev_hash: aHash,
  hash: aHash,
})

/** The order of the object's members is not significant. */
function limitFaults({ limit }: AuditedAct, row: View, at: string): string[] {
  const actual = row['limit_exception'] as View | null
  if (limit === null || actual === null) return differences(limit, actual, `${at}: limit_exception`)
  const { limit: name, value, count } = actual
  return differences({ ...limit }, { limit: name, value, count }, `${at}: limit_exception`)
}

/** Every settable field is in the row with its value before and after. */
function valueFaults(act: AuditedAct, row: View, at: string): string[] {
  const fields = settable[act.type] ?? []
  return (['before', 'after'] as const).flatMap((side) => {
    const actual = row[side] as View | null
    const known = act[side]
    if (known === null || actual === null) {
      return known === actual ? [] : [`${at}: ${side} is ${JSON.stringify(actual)}`]
    }
    return fields.flatMap((field) => differences(known[field], actual[field], `${at}: ${side}.${field}`))
  })
}

/** Each row contains the hash of the previous row of its chain. */
function chainFaults(rows: readonly View[], n: number): string[] {
  const [row, older] = [rows[n], rows[n + 1]]
  if (row?.['seq'] !== rows.length - n)
    return [`audit[${n}] has sequence number ${row?.['seq']}, expected ${rows.length - n}`]
  return older && row['prev_hash'] !== older['hash'] ? [`audit[${n}] has the wrong prev_hash`] : []
}
