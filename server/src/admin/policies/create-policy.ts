import { backtestPolicy } from '../../core/control/policies/backtest.ts'
import { createPolicy, policyChange, policyView } from '../../core/control/policies/policies.ts'
import { Policy, PolicyFields } from '../../core/control/policies/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { backtestDays } from './backtest-policy.ts'
import { policyEffects, policyWarnings } from './consequences.ts'

export const createPolicyOperation = adminOperation({
  id: 'policies.create',
  kind: 'create',
  path: '/admin/policies',
  summary: 'Create a policy',
  description:
    'Creates a policy. `pace_per_hour` is required for a `pace` and must be null for other kinds. A second policy with the same name is rejected with `already_exists`. An installation can have 100 policies.',
  params: NoParams,
  body: PolicyFields,
  refusals: ['already_exists', 'limit_exceeded'],
  example: {
    name: 'Failure rate of 30 % or more',
    mode: 'shadow',
    applies_to: { plan_ids: null, younger_than_days: 30, except_project_ids: [] },
    signal: 'failure_rate',
    window_minutes: 60,
    threshold: 30,
    minimum_volume: 500,
    intervention: {
      kind: 'pace',
      pace_per_hour: 500,
      duration_minutes: 1440,
      public_note: 'At least 30 % of your mail in the last hour failed. Your mail is sent slowly for a day.',
    },
    cooldown_minutes: 1440,
    reason: 'New projects often import old lists',
  },
  answer: Policy,
  backtest: (deps, _params, body) => backtestPolicy(deps, body, backtestDays),
  target: async () => null,
  async run({ tx, body }) {
    const row = await createPolicy(tx, body)
    return {
      audit: { projectId: null, change: policyChange(row.id, null, row) },
      effects: policyEffects(null, row),
      warnings: policyWarnings(row),
      answer: policyView(row),
      version: row.version,
      location: `/v1/admin/policies/${row.id}`,
    }
  },
})
