import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandTest } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointTest } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const testEndpointOperation = customerOperation({
  id: 'endpoints.test',
  kind: 'enqueue',
  path: '/projects/:project_id/endpoints/:id/test',
  summary: 'Send a test to an endpoint',
  description:
    'Sends an event of the type `endpoint.test` to this endpoint alone, signed like any other. It is delivered after the answer; `endpoints.attempts` tells what became of it. Refused for an endpoint that is switched off, and beyond so many a minute.',
  params: ItemParams,
  body: {},
  example: {},
  answer: EndpointTest,
  target: ({ tx, project, params }) => lockEndpoint(tx, project.id, params.id),
  run: async ({ tx, deps, target }) => ({
    answer: await commandTest(tx, deps.endpointCommands, target),
    activity: { resource: 'endpoint', id: target.id, before: null, after: null },
    version: null,
  }),
})
