import { matchRoutingForCustomer } from '../../core/mail/inbound/routing.ts'
import { MatchQuery, RoutingMatch } from '../../core/mail/inbound/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const matchRouteQuery = customerQuery({
  id: 'routing.match',
  path: '/projects/:project_id/routing/match',
  summary: 'Tell what becomes of mail for an address',
  description:
    'Which route takes mail for an address at this moment, and what it does with it: a route for the address, else one for ' +
    'the address without its tag (`ada+news@` is `ada@`), else the catch-all of the domain. For a domain that is not ' +
    'verified the outcome is `domain_not_verified`, with the route that matches: whether mail for it is routed depends on ' +
    'other projects.',
  params: NoParams,
  query: MatchQuery,
  answer: RoutingMatch,
  run: async ({ tx, projectId, domainId, query }) => ({
    answer: await matchRoutingForCustomer(tx, projectId, query.address, domainId),
  }),
})
