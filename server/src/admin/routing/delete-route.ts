import { lockProject } from '../../core/control/projects/projects.ts'
import { deleteRoute, lockRoute, routeConfig } from '../../core/control/routes/routes.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { routeEffects } from './consequences.ts'

export const deleteRouteOperation = adminOperation({
  id: 'routing.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/routing/:id',
  summary: 'Delete a route',
  description:
    "Deletes a route permanently. After an address route is deleted, the domain's catch-all receives mail for its address. Mail without a matching route is rejected.",
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The mailbox was closed' },
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockRoute(tx, project_id, id)
  },
  async run({ tx, target: before }) {
    await deleteRoute(tx, before)
    return {
      audit: {
        projectId: before.project_id,
        change: { resource: 'route', id: before.id, before: routeConfig(before), after: null },
      },
      effects: before.is_active
        ? () => routeEffects(tx, before, null)
        : ['The route is inactive, so routing does not change.'],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
