import { endpointView, listEndpoints } from '../../core/control/endpoints/endpoints.ts'
import { Endpoint } from '../../core/control/endpoints/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listEndpointsQuery = adminQuery({
  id: 'endpoints.list',
  path: '/admin/projects/:project_id/endpoints',
  summary: "List a project's endpoints",
  description: 'Endpoints, newest first.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Endpoint),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const page = pageOf(query)
      const fetch = (limit: number) => listEndpoints(tx, id, { limit, beforeId: page.lastId })
      return { answer: await listed(page, fetch, endpointView) }
    }),
})
