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
    'Decides what happens to inbound mail for one address of a domain, or as its catch-all for all the others. The complete configuration is given, with null for what does not apply; only `is_active` may be left out, and is then true. A second route for an address, or a second catch-all of a domain, is refused with `already_exists`. Refused with `limit_exceeded` beyond `max_routes` (`usage.show`).',
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
