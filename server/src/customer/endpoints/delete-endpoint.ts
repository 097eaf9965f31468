import { deleteEndpoint, endpointConfig, lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteEndpointOperation = customerOperation({
  id: 'endpoints.delete',
  kind: 'delete',
  path: '/projects/:project_id/endpoints/:id',
  summary: 'Delete an endpoint',
  description: 'Deletes an endpoint permanently. Returns `in_use` while a route delivers inbound mail to it.',
  params: ItemParams,
  body: {},
  refusals: ['in_use'],
  example: {},
  target: ({ tx, project, params }) => lockEndpoint(tx, project.id, params.id),
  async run({ tx, target: before }) {
    await deleteEndpoint(tx, before)
    const activity = { resource: 'endpoint', id: before.id, before: endpointConfig(before), after: null }
    return { answer: null, activity, version: null }
  },
})
