import Type from 'typebox'
import { listPlans, planView } from '../../core/control/plans/plans.ts'
import { Plan } from '../../core/control/plans/wire.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listPlansQuery = adminQuery({
  id: 'plans.list',
  path: '/admin/plans',
  summary: 'List plans',
  description: 'All plans, oldest first.',
  params: NoParams,
  query: {
    ...PageQuery,
    is_active: Type.Optional(
      Type.Boolean({ description: 'True: only active plans. False: only inactive plans.' }),
    ),
  },
  answer: listOf(Plan),
  async run({ db, query }) {
    const page = pageOf(query)
    const fetch = (limit: number) =>
      db.read((tx) => listPlans(tx, { isActive: query.is_active, limit, afterId: page.lastId ?? 0 }))
    return { answer: await listed(page, fetch, planView) }
  },
})
