import { findRoute, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showRoute = adminQuery({
  id: 'routing.show',
  path: '/admin/projects/:project_id/routing/:id',
  summary: 'Show a route',
  description: 'One route of a project.',
  params: ProjectItemParams,
  query: {},
  answer: Route,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findRoute(tx, params.project_id, params.id))
    return { answer: routeView(row), version: row.version }
  },
})
