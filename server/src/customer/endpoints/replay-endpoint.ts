import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandReplay, preloadReplay } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointReplay, ReplayFields, replayExample } from '../../core/control/endpoints/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const replayEndpointOperation = customerOperation({
  id: 'endpoints.replay',
  kind: 'enqueue',
  path: '/projects/:project_id/endpoints/:id/replay',
  summary: 'Replay events to an endpoint',
  description:
    'Redelivers either one event (`event_id`) or the events in a time range (`from` and `to`), with their original `webhook-id`. The replay is asynchronous. A time range is replayed gradually, and only one range per endpoint can be replayed at a time. `endpoints.attempts` shows the results. The endpoint must be active. The range cannot be longer than events are kept: 30 days, unless the operator configures a different retention period. By default, 60 single events per minute can be replayed to an endpoint.',
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
