import { randomUUIDv7 } from 'node:crypto'
import { userInfo } from 'node:os'
import { recordAudit, shell } from '../core/control/audit/record.ts'
import {
  listAllPolicies,
  type PolicyRow,
  policyChange,
  policyView,
  turnOffPolicies,
} from '../core/control/policies/policies.ts'
import type { Tx } from '../platform/db/db.ts'
import { command, print, reasonOf } from './command.ts'
import { withContext } from './with-context.ts'

/** `postern policies`: lists the policies, and turns all of them off if they do harm. */
export const policies = command('policies', {
  async list({ json }) {
    const rows = await withContext(({ db }) => db.admin.read(listAllPolicies))
    print(json, { policies: rows.map(policyView) }, () =>
      rows.length === 0 ? 'There are no policies.' : rows.map(lineOf).join('\n'),
    )
  },
  async off({ reason: given, json }) {
    const reason = given === undefined ? 'Turned off on the server.' : reasonOf(given)
    const before = await withContext(({ db }) => db.admin.transaction((tx) => turnOff(tx, reason)))
    const turnedOff = before.map(({ id, name, mode }) => ({ id, name, mode_before: mode }))
    print(json, { turned_off: turnedOff }, () =>
      before.length === 0 ? 'All policies are already off.' : turnedOffText(before),
    )
  },
})

/** Writes one audit row for each policy that was not off. Returns these policies as they were. */
async function turnOff(tx: Tx, reason: string): Promise<PolicyRow[]> {
  const changes = await turnOffPolicies(tx)
  const requestId = randomUUIDv7()
  for (const { before, after } of changes) {
    await recordAudit(tx, {
      actor: shell(`postern, as ${userInfo().username}`),
      requestId,
      operation: 'policies.edit',
      projectId: null,
      change: policyChange(after.id, before, after),
      related: [],
      reason,
      limitException: null,
      subject: null,
    })
  }
  return changes.map(({ before }) => before)
}

const lineOf = ({ id, mode, name, tripped_at }: PolicyRow): string =>
  `${String(id).padStart(5)}  ${mode.padEnd(8)}${name}${tripped_at ? ` (tripped at ${tripped_at.toISOString()})` : ''}`

const turnedOffText = (before: readonly PolicyRow[]): string =>
  [
    ...before.map(({ id, name, mode }) => `Turned off: policy ${id}, ${name} (mode was ${mode}).`),
    'Interventions that policies have started stay in force.',
  ].join('\n')
