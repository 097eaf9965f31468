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
  summary: 'Send a test to an endpoint',
  description:
    'Sends an event of the type `endpoint.test` to this endpoint alone, signed like any other. It is delivered after the answer; `endpoints.attempts` tells what became of it. Refused for an endpoint that is switched off, and beyond so many a minute.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The customer asks whether we reach them' },
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
      effects: [`An event of the type endpoint.test is posted to ${endpoint.url} only.`],
      warnings: queueWarnings(endpoint, 'at once'),
      answer,
      version: null,
    }
  },
})
