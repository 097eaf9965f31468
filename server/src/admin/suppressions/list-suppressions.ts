import { requireProject } from '../../core/control/projects/projects.ts'
import { suppressionsPage } from '../../core/mail/suppressions/suppressions.ts'
import { Suppression } from '../../core/mail/suppressions/wire.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listSuppressionsQuery = adminQuery({
  id: 'suppressions.list',
  path: '/admin/projects/:project_id/suppressions',
  summary: "List a project's suppressed addresses",
  description: 'Addresses to which the project cannot send, in alphabetical order.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Suppression),
  run: ({ mailDbFor, params: { project_id }, query }) =>
    mailDbFor(project_id).read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await suppressionsPage(tx, project_id, query) }
    }),
})
