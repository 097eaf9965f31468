import { countFirings } from '../../core/control/policies/firings.ts'
import { deletePolicy, lockPolicy, policyChange } from '../../core/control/policies/policies.ts'
import { countText } from '../../core/shared/counts.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { interventionsStay } from './consequences.ts'

export const deletePolicyOperation = adminOperation({
  id: 'policies.delete',
  kind: 'delete',
  path: '/admin/policies/:id',
  summary: 'Delete a policy',
  description:
    'Deletes the policy and its firings. Interventions that it has started stay in force. To keep the firings, set `mode` to `off` instead.',
  params: ItemParams,
  body: {},
  example: { reason: 'Replaced by a policy for each plan' },
  target: (tx, { id }) => lockPolicy(tx, id),
  async run({ tx, target: row }) {
    const firings = await countFirings(tx, row.id)
    await deletePolicy(tx, row)
    return {
      audit: { projectId: null, change: policyChange(row.id, row, null) },
      effects: [`Firings that are deleted with the policy: ${countText(firings)}.`, interventionsStay],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
