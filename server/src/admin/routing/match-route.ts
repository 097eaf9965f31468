import { findProject } from '../../core/control/projects/projects.ts'
import { matchRouting } from '../../core/mail/inbound/routing.ts'
import { MatchQuery, RoutingMatch } from '../../core/mail/inbound/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const matchRouteQuery = adminQuery({
  id: 'routing.match',
  path: '/admin/projects/:project_id/routing/match',
  summary: 'Tell what becomes of mail for an address',
  description:
    'Which route of the project takes mail for an address at this moment, and what it does with it. It is decided by the same ' +
    'rules by which mail is taken in: a route for the address, else one for the address without its tag (`ada+news@` is ' +
    '`ada@`), else the catch-all of the domain.',
  params: ProjectParams,
  query: MatchQuery,
  answer: RoutingMatch,
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      await findProject(tx, params.project_id)
      return { answer: await matchRouting(tx, params.project_id, query.address) }
    }),
})
