import { customerProjectView, listProjectsOf } from '../../core/control/projects/customers.ts'
import type { ProjectRow } from '../../core/control/projects/projects.ts'
import { CustomerProject } from '../../core/control/projects/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listProjectsQuery = customerQuery({
  id: 'projects.list',
  runsIn: 'user',
  path: '/projects',
  summary: 'List your projects',
  description:
    'Returns the projects that you are a member of, with your role in each, newest first. Pending invitations are not included.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(CustomerProject),
  async run({ tx, user, query }) {
    const view = (row: ProjectRow & { role: string }) => customerProjectView(row, row.role)
    return { answer: await newestFirst(query, (range) => listProjectsOf(tx, user.id, range), view) }
  },
})
