import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandTest } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointTest } from '../../core/control/endpoints/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { queueWarnings } from './consequences.ts'

export const testEndpointOperation = adminOperation({
  id: 'endpoints.test',
  kind: 'enqueue',
  path: '/admin/projects/:project_id/endpoints/:id/test',
  summary: 'Send a test event to an endpoint',
  description:
    'Sends an event of type `endpoint.test` to this endpoint only, signed like any other event. Delivery is asynchronous; `endpoints.attempts` lists the result. The endpoint must be active. Ten test events per minute can be sent to an endpoint, unless the operator configures a different limit.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The customer reports missing events' },
  answer: EndpointTest,
  hasVersion: false,
  target: (tx, { project_id, id }) => lockEndpoint(tx, project_id, id),
  async run({ tx, endpointCommands, target: endpoint }) {
    const answer = await commandTest(tx, endpointCommands, endpoint)
    return {
      audit: {
        projectId: endpoint.project_id,
        change: {
          resource: 'endpoint',
          id: endpoint.id,
          before: { is_test_requested: false },
          after: { is_test_requested: true },
        },
      },
      effects: [`An event of type endpoint.test is sent to ${endpoint.url} only.`],
      warnings: queueWarnings(endpoint, 'immediately'),
      answer,
      version: null,
    }
  },
})
