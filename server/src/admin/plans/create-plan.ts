import { createPlan, planConfig, planView } from '../../core/control/plans/plans.ts'
import { Plan, PlanFields } from '../../core/control/plans/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { planWarnings } from './consequences.ts'

export const createPlanOperation = adminOperation({
  id: 'plans.create',
  kind: 'create',
  path: '/admin/plans',
  summary: 'Create a plan',
  description: 'Creates a plan that can be assigned to projects.',
  params: NoParams,
  body: PlanFields,
  example: {
    name: 'Business',
    description: 'For teams that send every day.',
    support_level: 'priority',
    max_domains: 50,
    max_users: 25,
    max_mails_per_day: 50_000,
    max_mails_per_month: 1_000_000,
    billing_product_id: 'prod_business',
    price: 149.5,
    is_active: true,
  },
  answer: Plan,
  target: async () => null,
  async run({ tx, body }) {
    const row = await createPlan(tx, body)
    return {
      audit: {
        projectId: null,
        change: { resource: 'plan', id: row.id, before: null, after: planConfig(row) },
      },
      effects: [
        row.is_active
          ? 'The plan can be assigned to projects immediately.'
          : 'The plan cannot be assigned while it is inactive.',
      ],
      warnings: planWarnings(row),
      answer: planView(row),
      version: row.version,
      location: `/v1/admin/plans/${row.id}`,
    }
  },
})
