import Type from 'typebox'
import { lockProject } from '../../core/projects/projects.ts'
import { routeEffects, routeWarnings } from '../../core/routes/consequences.ts'
import { createRoute, routeConfig, routeView } from '../../core/routes/routes.ts'
import { Route, RouteFields } from '../../core/routes/wire.ts'
import { adminOperation } from '../operation.ts'
import { ProjectParams } from '../parameters.ts'

export const createRouteOperation = adminOperation({
  id: 'routing.create',
  kind: 'create',
  path: '/admin/projects/:project_id/routing',
  summary: 'Create a route',
  description:
    'Decides what happens to inbound mail for one address of a domain, or as its catch-all for all the others. The complete configuration is given, with null for what does not apply; only `is_active` may be left out, and is then true. A second route for an address, or a second catch-all of a domain, is refused with `already_exists`.',
  params: ProjectParams,
  body: { ...RouteFields, is_active: Type.Optional(RouteFields.is_active) },
  isCompleteConfiguration: true,
  refusals: ['already_exists'],
  example: {
    domain_id: 1,
    match: 'address',
    address: 'support@example.com',
    action: 'endpoint',
    endpoint_id: 1,
    forward_to: null,
  },
  answer: Route,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target: project, body }) {
    const row = await createRoute(tx, project.id, { ...body, is_active: body.is_active ?? true })
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'route', id: row.id, before: null, after: routeConfig(row) },
      },
      effects: () => routeEffects(tx, null, row),
      warnings: () => routeWarnings(tx, null, row),
      answer: routeView(row),
      version: row.version,
      location: `/v1/admin/projects/${project.id}/routing/${row.id}`,
    }
  },
})
