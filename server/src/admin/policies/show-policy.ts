import { findPolicy, policyView } from '../../core/control/policies/policies.ts'
import { Policy } from '../../core/control/policies/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showPolicy = adminQuery({
  id: 'policies.show',
  path: '/admin/policies/:id',
  summary: 'Show a policy',
  description: "One policy. The `ETag` is the policy's version.",
  params: ItemParams,
  query: {},
  answer: Policy,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findPolicy(tx, params.id))
    return { answer: policyView(row), version: row.version }
  },
})
