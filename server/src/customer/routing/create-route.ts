import { wakeConfirmations } from '../../core/control/routes/forward-confirmations.ts'
import { createRoute, routeConfig, routeView } from '../../core/control/routes/routes.ts'
import { NewRouteFields, Route, routeExamples } from '../../core/control/routes/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireProjectCap } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createRouteOperation = customerOperation({
  id: 'routing.create',
  kind: 'create',
  path: '/projects/:project_id/routing',
  summary: 'Create a route',
  description:
    'Defines how inbound mail is handled for one address of a domain or, as a catch-all, for all its other addresses. All fields except `is_active`, which defaults to true, are required; send null for those that do not apply. A second route for an address, or a second catch-all for a domain, is rejected with `already_exists`. Returns `limit_exceeded` if `max_routes` (see `usage.show`) would be exceeded.',
  params: NoParams,
  body: NewRouteFields,
  isCompleteConfiguration: true,
  refusals: ['already_exists', 'limit_exceeded'],
  example: routeExamples.create,
  answer: Route,
  async run({ tx, project, domainId, deps, body }) {
    const config = { ...body, is_active: body.is_active ?? true }
    const row = await createRoute(tx, project.id, config, domainId)
    await wakeConfirmations(tx, deps.domains.jobs, row)
    await requireProjectCap(tx, deps.caps, 'max_routes', project.id)
    return {
      answer: routeView(row),
      activity: { resource: 'route', id: row.id, before: null, after: routeConfig(row) },
      version: row.version,
      location: `/v1/projects/${project.id}/routing/${row.id}`,
    }
  },
})
