import { listMembers, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listMembersQuery = customerQuery({
  id: 'members.list',
  path: '/projects/:project_id/members',
  summary: 'List members',
  description: 'Returns members and invitations, newest first.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Member),
  async run({ tx, projectId, query }) {
    return { answer: await newestFirst(query, (range) => listMembers(tx, projectId, range), memberView) }
  },
})
