import { domainView, listDomains } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { listOf, newestFirst, PageQuery, type Range } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listDomainsQuery = customerQuery({
  id: 'domains.list',
  path: '/projects/:project_id/domains',
  summary: 'List domains',
  description:
    'Returns the domains, newest first, each with its DNS records and the results of the last check.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Domain),
  async run({ tx, projectId, domainId, query }) {
    const list = (range: Range) => listDomains(tx, projectId, range, domainId)
    return { answer: await newestFirst(query, list, domainView) }
  },
})
