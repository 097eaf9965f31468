import { listMembers, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listMembersQuery = adminQuery({
  id: 'members.list',
  path: '/admin/projects/:project_id/members',
  summary: "List a project's members",
  description: 'Members and invitations, newest first.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Member),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const page = pageOf(query)
      const beforeId = page.lastId ?? Number.MAX_SAFE_INTEGER
      return { answer: await listed(page, (limit) => listMembers(tx, id, { limit, beforeId }), memberView) }
    }),
})
