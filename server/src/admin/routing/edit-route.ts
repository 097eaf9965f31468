import { lockProject } from '../../core/control/projects/projects.ts'
import { wakeConfirmations } from '../../core/control/routes/forward-confirmations.ts'
import { editRoute, lockRoute, routeConfig, routeView } from '../../core/control/routes/routes.ts'
import { Route, RouteFields, routeExamples } from '../../core/control/routes/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { routeEffects, routeWarnings } from './consequences.ts'

export const editRouteOperation = adminOperation({
  id: 'routing.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/routing/:id',
  summary: 'Edit a route',
  description:
    'Replaces the complete editable configuration. `domain_id`, `match`, `address`, `action`, `endpoint_id`, `forward_to` and `is_active` are required; send null for those that do not apply. If one is missing, the request is rejected with `incomplete_configuration`. A second route for an address, or a second catch-all for a domain, is rejected with `already_exists`.',
  params: ProjectItemParams,
  body: RouteFields,
  isCompleteConfiguration: true,
  refusals: ['already_exists'],
  example: routeExamples.edit,
  answer: Route,
  // The project is locked first: renaming the domain rewrites addresses and must not run concurrently.
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockRoute(tx, project_id, id)
  },
  async run({ tx, domains, target: before, body }) {
    const after = await editRoute(tx, before, body)
    const isUnchanged = after === before
    if (!isUnchanged) await wakeConfirmations(tx, domains.jobs, after)
    return {
      audit: isUnchanged
        ? unchanged
        : {
            projectId: after.project_id,
            change: {
              resource: 'route',
              id: after.id,
              before: routeConfig(before),
              after: routeConfig(after),
            },
          },
      effects: isUnchanged ? [] : () => routeEffects(tx, before, after),
      warnings: isUnchanged ? [] : () => routeWarnings(tx, before, after),
      answer: routeView(after),
      version: after.version,
    }
  },
})
