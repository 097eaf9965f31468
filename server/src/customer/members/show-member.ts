import { findMember, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showMember = customerQuery({
  id: 'members.show',
  path: '/projects/:project_id/members/:id',
  summary: 'Show a member',
  description: 'Returns one member or invitation.',
  params: ItemParams,
  query: {},
  answer: Member,
  hasVersion: true,
  async run({ tx, projectId, params }) {
    const row = await findMember(tx, projectId, params.id)
    return { answer: memberView(row), version: row.version }
  },
})
