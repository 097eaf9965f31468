import {
  endpointConfig,
  endpointView,
  lockEndpoint,
  rotateEndpointSecret,
} from '../../core/control/endpoints/endpoints.ts'
import { EndpointWithSecret } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const rotateEndpointOperation = customerOperation({
  id: 'endpoints.rotate',
  kind: 'rotate',
  path: '/projects/:project_id/endpoints/:id/rotate',
  summary: "Rotate an endpoint's secret",
  description:
    'Generates a new signing secret and returns it only in this response. The previous secret is not used for any later delivery, including queued retries.',
  params: ItemParams,
  body: {},
  example: {},
  answer: EndpointWithSecret,
  revealsSecret: true,
  target: ({ tx, project, params }) => lockEndpoint(tx, project.id, params.id),
  async run({ tx, project, deps, target: before }) {
    const { row, secret } = await rotateEndpointSecret(tx, deps.domains.vault, before)
    return {
      answer: { resource: endpointView(row), secret },
      activity: changeOf('endpoint', before, row, endpointConfig),
      version: row.version,
      location: `/v1/projects/${project.id}/endpoints/${row.id}`,
    }
  },
})
