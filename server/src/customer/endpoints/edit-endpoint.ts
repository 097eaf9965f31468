import {
  editEndpoint,
  endpointConfig,
  endpointView,
  lockEndpoint,
} from '../../core/control/endpoints/endpoints.ts'
import { Endpoint, EndpointFields, endpointExamples } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editEndpointOperation = customerOperation({
  id: 'endpoints.edit',
  kind: 'edit',
  path: '/projects/:project_id/endpoints/:id',
  summary: 'Edit an endpoint',
  description:
    'Replaces the complete configuration: `name`, `url`, `events` and `is_active` are all required. If one is missing, the request is rejected with `incomplete_configuration`. Reactivating an endpoint clears the reason why it was disabled and delivers its pending events immediately.',
  params: ItemParams,
  body: EndpointFields,
  isCompleteConfiguration: true,
  example: endpointExamples.edit,
  answer: Endpoint,
  target: ({ tx, project, params }) => lockEndpoint(tx, project.id, params.id),
  async run({ tx, deps, target: before, body }) {
    const row = await editEndpoint(tx, deps.endpoints, before, body)
    const activity = changeOf('endpoint', before, row, endpointConfig)
    return { answer: endpointView(row), activity, version: row.version }
  },
})
