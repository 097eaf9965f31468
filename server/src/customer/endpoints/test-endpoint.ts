import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandTest } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointTest } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const testEndpointOperation = customerOperation({
  id: 'endpoints.test',
  kind: 'enqueue',
  path: '/projects/:project_id/endpoints/:id/test',
  summary: 'Send a test event to an endpoint',
  description:
    'Sends a signed event of type `endpoint.test` to this endpoint only. Delivery is asynchronous; `endpoints.attempts` shows the result. The endpoint must be active. Ten test events per minute can be sent to an endpoint, unless the operator configures a different limit.',
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
