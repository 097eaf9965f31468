import Type from 'typebox'
import { backtestPolicy } from '../../core/control/policies/backtest.ts'
import {
  editPolicy,
  findPolicyIfExists,
  lockPolicy,
  policyChange,
  policyConfig,
  policyView,
} from '../../core/control/policies/policies.ts'
import { Policy, PolicyFields } from '../../core/control/policies/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { backtestDays } from './backtest-policy.ts'
import { policyEffects, policyWarnings } from './consequences.ts'

export const editPolicyOperation = adminOperation({
  id: 'policies.edit',
  kind: 'edit',
  path: '/admin/policies/:id',
  summary: 'Edit a policy',
  description:
    'Updates the fields provided in the request body; `applies_to` and `intervention` are replaced as a whole. The change applies from the next evaluation on; interventions in force do not change. Sending `mode` also sets `tripped_at` to null. A name that another policy has is rejected with `already_exists`.',
  params: ItemParams,
  body: Type.Partial(Type.Object(PolicyFields)).properties,
  refusals: ['already_exists'],
  example: { mode: 'enforce', reason: 'It fired only for abusive projects this week' },
  answer: Policy,
  async backtest(deps, { id }, body) {
    // The mode makes no difference, and turning a policy off must not wait.
    if (Object.keys(body).join() === 'mode') return undefined
    const current = await deps.db.read((tx) => findPolicyIfExists(tx, id))
    return current && backtestPolicy(deps, { ...policyConfig(current), ...body }, backtestDays)
  },
  target: (tx, { id }) => lockPolicy(tx, id),
  async run({ tx, target: before, body }) {
    const after = await editPolicy(tx, before, body)
    const isChanged = after !== before
    return {
      audit: isChanged ? { projectId: null, change: policyChange(after.id, before, after) } : unchanged,
      effects: isChanged ? policyEffects(before, after) : [],
      warnings: policyWarnings(after),
      answer: policyView(after),
      version: after.version,
    }
  },
})
