import { matchRoutingForCustomer } from '../../core/mail/inbound/routing.ts'
import { MatchQuery, RoutingMatch } from '../../core/mail/inbound/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const matchRouteQuery = customerQuery({
  id: 'routing.match',
  path: '/projects/:project_id/routing/match',
  summary: 'Find the route for an address',
  description:
    "Returns the route that currently matches mail for an address, and its action: a route for the address, otherwise one for the address without its tag (`ada@` for `ada+news@`), otherwise the domain's catch-all. For an unverified domain, the outcome is `domain_not_verified`, together with the matching route, because whether mail is routed depends on other projects.",
  params: NoParams,
  query: MatchQuery,
  answer: RoutingMatch,
  run: async ({ tx, projectId, domainId, query }) => ({
    answer: await matchRoutingForCustomer(tx, projectId, query.address, domainId),
  }),
})
