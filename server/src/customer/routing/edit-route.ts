import { wakeConfirmations } from '../../core/control/routes/forward-confirmations.ts'
import { editRoute, lockRoute, routeConfig, routeView } from '../../core/control/routes/routes.ts'
import { Route, RouteFields, routeExamples } from '../../core/control/routes/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editRouteOperation = customerOperation({
  id: 'routing.edit',
  kind: 'edit',
  path: '/projects/:project_id/routing/:id',
  summary: 'Edit a route',
  description:
    'Replaces the complete configuration: `domain_id`, `match`, `address`, `action`, `endpoint_id`, `forward_to` and `is_active` are all required; send null for those that do not apply. If one is missing, the request is rejected with `incomplete_configuration`. A second route for an address, or a second catch-all for a domain, is rejected with `already_exists`.',
  params: ItemParams,
  body: RouteFields,
  isCompleteConfiguration: true,
  refusals: ['already_exists'],
  example: routeExamples.edit,
  answer: Route,
  target: ({ tx, project, domainId, params }) => lockRoute(tx, project.id, params.id, domainId),
  async run({ tx, deps, domainId, target: before, body }) {
    const row = await editRoute(tx, before, body, domainId)
    if (row !== before) await wakeConfirmations(tx, deps.domains.jobs, row)
    const activity = changeOf('route', before, row, routeConfig)
    return { answer: routeView(row), activity, version: row.version }
  },
})
