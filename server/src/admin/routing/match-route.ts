import { findProject } from '../../core/control/projects/projects.ts'
import { matchRouting } from '../../core/mail/inbound/routing.ts'
import { MatchQuery, RoutingMatch } from '../../core/mail/inbound/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const matchRouteQuery = adminQuery({
  id: 'routing.match',
  path: '/admin/projects/:project_id/routing/match',
  summary: 'Find the route for an address',
  description:
    'Returns the route that currently matches an address, and its action. The rules are the same as for inbound mail: the ' +
    'route for the address, otherwise the route for the address without its tag (`ada@` for `ada+news@`), otherwise the ' +
    "domain's catch-all.",
  params: ProjectParams,
  query: MatchQuery,
  answer: RoutingMatch,
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      await findProject(tx, params.project_id)
      return { answer: await matchRouting(tx, params.project_id, query.address) }
    }),
})
