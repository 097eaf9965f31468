import { requestConfirmation } from '../../core/control/routes/forward-confirmations.ts'
import { lockRoute, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const requestConfirmationOperation = customerOperation({
  id: 'routing.request-confirmation',
  kind: 'command',
  path: '/projects/:project_id/routing/:id/request-confirmation',
  summary: 'Ask the target of a forward again to confirm',
  description:
    'Mails `forward_to` another link to confirm that it wants the mail, and ends the link before it. The mail is sent within seconds if the domain is verified. The confirmation mails of a project and to an address are limited in a UTC day; beyond the limit the mail waits for the next day. Nothing is sent if the route does not forward, or `forward_to` has confirmed already. No version moves.',
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
