import { findProject } from '../../core/control/projects/projects.ts'
import { listRoutes, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listRoutesQuery = adminQuery({
  id: 'routing.list',
  path: '/admin/projects/:project_id/routing',
  summary: "List a project's routes",
  description: 'Routes of all domains of the project, newest first.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Route),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const page = pageOf(query)
      const fetch = (limit: number) => listRoutes(tx, id, { limit, beforeId: page.lastId })
      return { answer: await listed(page, fetch, routeView) }
    }),
})
