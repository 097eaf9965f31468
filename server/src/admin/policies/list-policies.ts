import Type from 'typebox'
import { listPolicies, policyView } from '../../core/control/policies/policies.ts'
import { Policy, policyModes } from '../../core/control/policies/wire.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { oneOf } from '../../core/shared/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listPoliciesQuery = adminQuery({
  id: 'policies.list',
  path: '/admin/policies',
  summary: 'List policies',
  description: 'All policies, oldest first.',
  params: NoParams,
  query: {
    ...PageQuery,
    mode: Type.Optional(oneOf(policyModes, { description: 'Only policies in this mode.' })),
  },
  answer: listOf(Policy),
  async run({ db, query }) {
    const page = pageOf(query)
    const fetch = (limit: number) =>
      db.read((tx) => listPolicies(tx, { mode: query.mode, limit, afterId: page.lastId ?? 0 }))
    return { answer: await listed(page, fetch, policyView) }
  },
})
