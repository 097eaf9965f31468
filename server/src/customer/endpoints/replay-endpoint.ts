import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandReplay, preloadReplay } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointReplay, ReplayFields, replayExample } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const replayEndpointOperation = customerOperation({
  id: 'endpoints.replay',
  kind: 'enqueue',
  path: '/projects/:project_id/endpoints/:id/replay',
  summary: 'Have events delivered once more',
  description:
    'Delivers one event (`event_id`), or those of a stretch of time (`from` and `to`), under the `webhook-id` that they had. It is done after the answer, a stretch of time a little at a time, one per endpoint; `endpoints.attempts` tells what became of it. Refused for an endpoint that is switched off, and beyond so many single events a minute.',
  params: ItemParams,
  body: ReplayFields,
  example: replayExample,
  answer: EndpointReplay,
  preload: (mail, { projectId, params, body }) => preloadReplay(mail, projectId, params.id, body),
  target: ({ tx, project, params }) => lockEndpoint(tx, project.id, params.id),
  run: async ({ tx, deps, target, preloaded, body }) => ({
    answer: await commandReplay(tx, deps.endpointCommands, target, body, preloaded),
    activity: { resource: 'endpoint', id: target.id, before: null, after: body },
    version: null,
  }),
})
