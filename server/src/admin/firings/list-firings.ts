import Type from 'typebox'
import { firingView, listFirings } from '../../core/control/policies/firings.ts'
import { Firing } from '../../core/control/policies/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listFiringsQuery = adminQuery({
  id: 'firings.list',
  path: '/admin/firings',
  summary: 'List firings of policies',
  description:
    'The times at which a policy fired for a project, with the figures, newest first. Firings are kept for 90 days.',
  params: NoParams,
  query: {
    ...PageQuery,
    policy_id: Type.Optional({ ...Id, description: 'Only firings of this policy.' }),
    project_id: Type.Optional({ ...Id, description: 'Only firings for this project.' }),
  },
  answer: listOf(Firing),
  async run({ db, query }) {
    const filter = { policyId: query.policy_id, projectId: query.project_id }
    const fetch = (range: { limit: number; beforeId: number }) =>
      db.read((tx) => listFirings(tx, { ...filter, ...range }))
    return { answer: await newestFirst(query, fetch, firingView) }
  },
})
