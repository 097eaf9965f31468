import { deleteRoute, lockRoute, routeConfig } from '../../core/control/routes/routes.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteRouteOperation = customerOperation({
  id: 'routing.delete',
  kind: 'delete',
  path: '/projects/:project_id/routing/:id',
  summary: 'Delete a route',
  description:
    "Deletes a route permanently. Mail for its address is then handled by the domain's catch-all; mail that matches no route is rejected.",
  params: ItemParams,
  body: {},
  example: {},
  target: ({ tx, project, domainId, params }) => lockRoute(tx, project.id, params.id, domainId),
  async run({ tx, target: before }) {
    await deleteRoute(tx, before)
    const activity = { resource: 'route', id: before.id, before: routeConfig(before), after: null }
    return { answer: null, activity, version: null }
  },
})
