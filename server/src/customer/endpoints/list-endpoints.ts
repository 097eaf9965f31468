import { endpointView, listEndpoints } from '../../core/control/endpoints/endpoints.ts'
import { Endpoint } from '../../core/control/endpoints/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listEndpointsQuery = customerQuery({
  id: 'endpoints.list',
  path: '/projects/:project_id/endpoints',
  summary: 'List endpoints',
  description: 'Returns the endpoints, newest first.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Endpoint),
  async run({ tx, projectId, query }) {
    return { answer: await newestFirst(query, (range) => listEndpoints(tx, projectId, range), endpointView) }
  },
})
