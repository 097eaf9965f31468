import { listOf, newestFirst, PageQuery } from '../../core/page.ts'
import { listProjectsOf } from '../../core/projects/customers.ts'
import { projectView } from '../../core/projects/projects.ts'
import { Project } from '../../core/projects/wire.ts'
import { userQuery } from '../operation.ts'

export const listProjectsQuery = userQuery({
  id: 'projects.list',
  path: '/projects',
  summary: 'List your projects',
  description:
    'The projects in which you are a member, newest first. Invitations that you have not accepted are none.',
  query: PageQuery,
  answer: listOf(Project),
  async run({ tx, user, query }) {
    return { answer: await newestFirst(query, (range) => listProjectsOf(tx, user.id, range), projectView) }
  },
})
