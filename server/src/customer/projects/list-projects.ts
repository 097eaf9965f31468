import { listProjectsOf } from '../../core/control/projects/customers.ts'
import { projectView } from '../../core/control/projects/projects.ts'
import { Project } from '../../core/control/projects/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
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
