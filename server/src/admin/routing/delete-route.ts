import { lockProject } from '../../core/control/projects/projects.ts'
import { deleteRoute, lockRoute, routeConfig } from '../../core/control/routes/routes.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { routeEffects } from './consequences.ts'

export const deleteRouteOperation = adminOperation({
  id: 'routing.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/routing/:id',
  summary: 'Remove a route',
  description:
    "Deletes a route for good. Mail for the address of an address route falls to the domain's catch-all; mail that no route takes is refused.",
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The mailbox is not used any more' },
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
        : ['It was switched off, so no mail changes its way.'],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
