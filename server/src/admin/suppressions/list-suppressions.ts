import { listOf, PageQuery } from '../../core/page.ts'
import { findProject } from '../../core/projects/projects.ts'
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
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      return { answer: await suppressionsPage(tx, id, query) }
    }),
})
