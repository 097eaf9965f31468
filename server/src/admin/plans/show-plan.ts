import { findPlan, planView } from '../../core/control/plans/plans.ts'
import { Plan } from '../../core/control/plans/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showPlan = adminQuery({
  id: 'plans.show',
  path: '/admin/plans/:id',
  summary: 'Show a plan',
  description: "One plan. The `ETag` is the plan's version.",
  params: ItemParams,
  query: {},
  answer: Plan,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findPlan(tx, params.id))
    return { answer: planView(row), version: row.version }
  },
})
