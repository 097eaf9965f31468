import { createEndpoint, endpointConfig, endpointView } from '../../core/control/endpoints/endpoints.ts'
import { EndpointWithSecret, endpointExamples, NewEndpointFields } from '../../core/control/endpoints/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireProjectCap } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createEndpointOperation = customerOperation({
  id: 'endpoints.create',
  kind: 'create',
  path: '/projects/:project_id/endpoints',
  summary: 'Create an endpoint',
  description:
    'Adds an HTTPS receiver for events and inbound mail. The secret used to sign deliveries is returned only in this response. Returns `limit_exceeded` if `max_endpoints` (see `usage.show`) would be exceeded.',
  params: NoParams,
  body: NewEndpointFields,
  refusals: ['limit_exceeded'],
  example: endpointExamples.create,
  answer: EndpointWithSecret,
  revealsSecret: true,
  async run({ tx, project, deps, body }) {
    const config = { ...body, is_active: body.is_active ?? true }
    const { row, secret } = await createEndpoint(tx, deps.endpoints, project.id, config)
    await requireProjectCap(tx, deps.caps, 'max_endpoints', project.id)
    return {
      answer: { resource: endpointView(row), secret },
      activity: { resource: 'endpoint', id: row.id, before: null, after: endpointConfig(row) },
      version: row.version,
      location: `/v1/projects/${project.id}/endpoints/${row.id}`,
    }
  },
})
