import { domainView, listDomains } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listDomainsQuery = adminQuery({
  id: 'domains.list',
  path: '/admin/projects/:project_id/domains',
  summary: "List a project's domains",
  description: 'Domains, newest first, with their DNS records and the results of the last check.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Domain),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const page = pageOf(query)
      const beforeId = page.lastId ?? Number.MAX_SAFE_INTEGER
      const fetch = (limit: number) => listDomains(tx, id, { limit, beforeId })
      return { answer: await listed(page, fetch, domainView) }
    }),
})
