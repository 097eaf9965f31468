import { lockProject } from '../../core/control/projects/projects.ts'
import { requestConfirmation } from '../../core/control/routes/forward-confirmations.ts'
import { lockRoute, routeView } from '../../core/control/routes/routes.ts'
import { Route } from '../../core/control/routes/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const requestConfirmationOperation = adminOperation({
  id: 'routing.request-confirmation',
  kind: 'command',
  path: '/admin/projects/:project_id/routing/:id/request-confirmation',
  summary: 'Resend the confirmation link for a forward',
  description:
    'Sends a new confirmation link to `forward_to`; the previous link becomes invalid. The message is sent within seconds if the domain is verified. Confirmation messages are limited per project and per address for each UTC day; once the limit is reached, the message is sent the next day. Nothing is sent if the route does not forward, or if the recipient has already confirmed. The version does not change.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The customer deleted the first message' },
  answer: Route,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockRoute(tx, project_id, id)
  },
  async run({ tx, domains, target: route }) {
    const about = { domain_id: route.domain_id, address: route.address, forward_to: route.forward_to }
    const round = await requestConfirmation(tx, domains.jobs, route)
    return {
      audit: {
        projectId: route.project_id,
        change: {
          ...{ resource: 'route', id: route.id },
          before: { ...about, confirmation_mail: round === null ? null : round - 1 },
          after: { ...about, confirmation_mail: round },
        },
      },
      effects:
        round !== null
          ? [`A new confirmation link is sent to ${route.forward_to}. The previous link becomes invalid.`]
          : ['Nothing is sent: the route does not forward, or the recipient has already confirmed.'],
      warnings: [],
      answer: routeView(route),
      version: route.version,
    }
  },
})
