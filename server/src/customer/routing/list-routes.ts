import { listRoutes, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { listOf, newestFirst, PageQuery, type Range } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listRoutesQuery = customerQuery({
  id: 'routing.list',
  path: '/projects/:project_id/routing',
  summary: 'List routes',
  description: 'Returns the routes, newest first.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Route),
  async run({ tx, projectId, domainId, query }) {
    const list = (range: Range) => listRoutes(tx, projectId, range, domainId)
    return { answer: await newestFirst(query, list, routeView) }
  },
})
