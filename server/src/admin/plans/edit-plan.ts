import Type from 'typebox'
import { editPlan, lockPlan, planConfig, planView } from '../../core/control/plans/plans.ts'
import { Plan, PlanFields } from '../../core/control/plans/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { overLimitWarnings, planEffects, planWarnings } from './consequences.ts'

export const editPlanOperation = adminOperation({
  id: 'plans.edit',
  kind: 'edit',
  path: '/admin/plans/:id',
  summary: 'Edit a plan',
  description:
    'Updates the fields provided in the request body. New limits apply immediately to every project on the plan; existing domains and members are not removed. An inactive plan cannot be assigned to more projects; projects already on it are not affected.',
  params: ItemParams,
  body: Type.Partial(Type.Object(PlanFields)).properties,
  example: { max_mails_per_month: 250_000, price: 49 },
  answer: Plan,
  target: (tx, { id }) => lockPlan(tx, id),
  async run({ tx, target: before, body }) {
    const after = await editPlan(tx, before, body)
    return {
      audit:
        after === before
          ? unchanged
          : {
              projectId: null,
              change: {
                resource: 'plan',
                id: after.id,
                before: planConfig(before),
                after: planConfig(after),
              },
            },
      effects: async () => (after === before ? [] : planEffects(tx, before, after)),
      warnings: async () => [...planWarnings(after), ...(await overLimitWarnings(tx, after))],
      answer: planView(after),
      version: after.version,
    }
  },
})
