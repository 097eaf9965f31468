import { findRoute, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showRoute = customerQuery({
  id: 'routing.show',
  path: '/projects/:project_id/routing/:id',
  summary: 'Show a route',
  description: 'Returns one route.',
  params: ItemParams,
  query: {},
  answer: Route,
  hasVersion: true,
  async run({ tx, projectId, domainId, params }) {
    const row = await findRoute(tx, projectId, params.id, domainId)
    return { answer: routeView(row), version: row.version }
  },
})
