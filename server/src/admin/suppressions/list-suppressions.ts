import { listOf, PageQuery } from '../../core/page.ts'
import { requireProject } from '../../core/projects/projects.ts'
import { suppressionsPage } from '../../core/suppressions/suppressions.ts'
import { Suppression } from '../../core/suppressions/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listSuppressionsQuery = adminQuery({
  id: 'suppressions.list',
  path: '/admin/projects/:project_id/suppressions',
  summary: 'List the suppressed addresses of a project',
  description: 'Addresses to which the project sends no more, in alphabetical order.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Suppression),
  run: ({ mailOf, params: { project_id }, query }) =>
    mailOf(project_id).read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await suppressionsPage(tx, project_id, query) }
    }),
})
