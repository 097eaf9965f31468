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
    'Defines how inbound mail is handled for one address of a domain or, as a catch-all, for all its other addresses. All fields except `is_active`, which defaults to true, are required; send null for those that do not apply. A second route for an address, or a second catch-all for a domain, is rejected with `already_exists`. A `reason` is required to exceed `max_routes`, and the audit entry records the exception.',
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
