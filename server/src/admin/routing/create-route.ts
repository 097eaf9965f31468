import { projectBeyond } from '../../core/control/caps/caps.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { wakeConfirmations } from '../../core/control/routes/forward-confirmations.ts'
import { createRoute, routeConfig, routeView } from '../../core/control/routes/routes.ts'
import { NewRouteFields, Route, routeExamples } from '../../core/control/routes/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { routeEffects, routeWarnings } from './consequences.ts'

export const createRouteOperation = adminOperation({
  id: 'routing.create',
  kind: 'create',
  path: '/admin/projects/:project_id/routing',
  summary: 'Create a route',
  description:
    'Decides what happens to inbound mail for one address of a domain, or as its catch-all for all the others. The complete configuration is given, with null for what does not apply; only `is_active` may be left out, and is then true. A second route for an address, or a second catch-all of a domain, is refused with `already_exists`. Beyond `max_routes` a `reason` is required, and the audit row records the exception.',
  params: ProjectParams,
  body: NewRouteFields,
  isCompleteConfiguration: true,
  refusals: ['already_exists', 'limit_exceeded'],
  example: routeExamples.create,
  answer: Route,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, caps, domains, target: project, body }) {
    const row = await createRoute(tx, project.id, { ...body, is_active: body.is_active ?? true })
    await wakeConfirmations(tx, domains.jobs, row)
    const limitException = await projectBeyond(tx, caps, 'max_routes', project.id)
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'route', id: row.id, before: null, after: routeConfig(row) },
        limitException,
      },
      effects: () => routeEffects(tx, null, row),
      warnings: async () => [...limitWarnings(limitException), ...(await routeWarnings(tx, null, row))],
      answer: routeView(row),
      version: row.version,
      location: `/v1/admin/projects/${project.id}/routing/${row.id}`,
    }
  },
})
