import { endpointView, findEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { Endpoint } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showEndpoint = customerQuery({
  id: 'endpoints.show',
  path: '/projects/:project_id/endpoints/:id',
  summary: 'Show an endpoint',
  description: 'Returns one endpoint with the last four characters of its secret. The secret is never shown.',
  params: ItemParams,
  query: {},
  answer: Endpoint,
  hasVersion: true,
  async run({ tx, projectId, params }) {
    const row = await findEndpoint(tx, projectId, params.id)
    return { answer: endpointView(row), version: row.version }
  },
})
