import { requestConfirmation } from '../../core/control/routes/forward-confirmations.ts'
import { lockRoute, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const requestConfirmationOperation = customerOperation({
  id: 'routing.request-confirmation',
  kind: 'command',
  path: '/projects/:project_id/routing/:id/request-confirmation',
  summary: 'Resend the confirmation link for a forward',
  description:
    'Sends a new confirmation link to `forward_to` and invalidates the previous one. The message is sent within seconds if the domain is verified. Confirmation messages are limited per project and per address for each UTC day; once the limit is reached, the message is sent the next day. Nothing is sent if the route does not forward, or if the recipient has already confirmed. The version does not change.',
  params: ItemParams,
  body: {},
  example: {},
  answer: Route,
  target: ({ tx, project, domainId, params }) => lockRoute(tx, project.id, params.id, domainId),
  async run({ tx, deps, target: route }) {
    await requestConfirmation(tx, deps.domains.jobs, route)
    const activity = { resource: 'route', id: route.id, before: null, after: null }
    return { answer: routeView(route), activity, version: route.version }
  },
})
