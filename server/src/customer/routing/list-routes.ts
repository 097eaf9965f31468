import { listOf, newestFirst, PageQuery } from '../../core/page.ts'
import { listRoutes, routeView } from '../../core/routes/routes.ts'
import { Route } from '../../core/routes/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listRoutesQuery = customerQuery({
  id: 'routing.list',
  path: '/projects/:project_id/routing',
  summary: 'List routes',
  description: 'Routes, newest first.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Route),
  async run({ tx, projectId, query }) {
    return { answer: await newestFirst(query, (range) => listRoutes(tx, projectId, range), routeView) }
  },
})
