import type { Static } from 'typebox'
import { lockEndpoint } from '../../core/control/endpoints/endpoints.ts'
import { commandReplay, preloadReplay } from '../../core/control/endpoints/test-and-replay.ts'
import { EndpointReplay, ReplayFields, replayExample } from '../../core/control/endpoints/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { queueWarnings } from './consequences.ts'

export const replayEndpointOperation = adminOperation({
  id: 'endpoints.replay',
  kind: 'enqueue',
  path: '/admin/projects/:project_id/endpoints/:id/replay',
  summary: 'Replay events to an endpoint',
  description:
    'Redelivers either one event (`event_id`) or the events in a time range (`from` and `to`), with their original `webhook-id`. The replay is asynchronous. A time range is replayed gradually, and only one range per endpoint can be replayed at a time. `endpoints.attempts` lists the results. The endpoint must be active. The range cannot be longer than events are kept: 30 days, unless the operator configures a different retention period. By default, 60 single events per minute can be replayed to an endpoint.',
  params: ProjectItemParams,
  body: ReplayFields,
  example: { ...replayExample, reason: 'The receiver lost the events of last night' },
  answer: EndpointReplay,
  hasVersion: false,
  preload: (mail, { project_id, id }, body) => preloadReplay(mail, project_id, id, body),
  target: (tx, { project_id, id }) => lockEndpoint(tx, project_id, id),
  async run({ tx, endpointCommands, target: endpoint, preloaded, body }) {
    const answer = await commandReplay(tx, endpointCommands, endpoint, body, preloaded)
    const { endpoint_id, ...replay } = answer
    return {
      audit: {
        projectId: endpoint.project_id,
        change: { resource: 'endpoint', id: endpoint_id, before: { ...nothing }, after: replay },
      },
      effects: effectsOf(answer),
      warnings: queueWarnings(endpoint, replay.event_id === null ? 'when it is due' : 'immediately'),
      answer,
      version: null,
    }
  },
})

const nothing = { event_id: null, from: null, to: null, only_undelivered: null }

function effectsOf({ event_id, from, to, only_undelivered }: Static<typeof EndpointReplay>): string[] {
  if (event_id !== null) return [`The event ${event_id} is delivered again with the same webhook-id.`]
  const which = only_undelivered ? 'except those already delivered' : 'including those already delivered'
  return [`Events from ${from} to ${to} are redelivered gradually, ${which}.`]
}
