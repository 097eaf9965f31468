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
  summary: 'Ask the target of a forward again to confirm',
  description:
    'Mails `forward_to` another link to confirm that it wants the mail, and ends the link before it. The mail is sent within seconds if the domain is verified. The confirmation mails of a project and to an address are limited in a UTC day; beyond the limit the mail waits for the next day. Nothing is sent if the route does not forward, or `forward_to` has confirmed already. No version moves.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The customer deleted the mail' },
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
          ? [`A new link is mailed to ${route.forward_to}, and the one before ends.`]
          : ['Nothing is sent: the route does not forward, or its target has confirmed already.'],
      warnings: [],
      answer: routeView(route),
      version: route.version,
    }
  },
})
