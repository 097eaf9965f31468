import { createEndpoint, endpointView } from '../../core/endpoints/endpoints.ts'
import { EndpointWithSecret, endpointExamples, NewEndpointFields } from '../../core/endpoints/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const createEndpointOperation = customerOperation({
  id: 'endpoints.create',
  kind: 'create',
  path: '/projects/:project_id/endpoints',
  summary: 'Create an endpoint',
  description:
    'Adds an HTTPS receiver for events and inbound mail. The answer holds the secret with which deliveries are signed, this once only.',
  params: NoParams,
  body: NewEndpointFields,
  example: endpointExamples.create,
  answer: EndpointWithSecret,
  revealsSecret: true,
  async run({ tx, project, deps, body }) {
    const config = { ...body, is_active: body.is_active ?? true }
    const { row, secret } = await createEndpoint(tx, deps.endpoints, project.id, config)
    return {
      answer: { resource: endpointView(row), secret },
      version: row.version,
      location: `/v1/projects/${project.id}/endpoints/${row.id}`,
    }
  },
})
