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
  summary: 'Deliver events to an endpoint once more',
  description:
    'Delivers one event (`event_id`), or those of a stretch of time (`from` and `to`), under the `webhook-id` that they had. It is done after the answer, a stretch of time a little at a time, one per endpoint; `endpoints.attempts` tells what became of it. Refused for an endpoint that is switched off, and beyond so many single events a minute.',
  params: ProjectItemParams,
  body: ReplayFields,
  example: { ...replayExample, reason: 'Their receiver lost the events of this night' },
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
      warnings: queueWarnings(endpoint, replay.event_id === null ? 'when it is due' : 'at once'),
      answer,
      version: null,
    }
  },
})

const nothing = { event_id: null, from: null, to: null, only_undelivered: null }

function effectsOf({ event_id, from, to, only_undelivered }: Static<typeof EndpointReplay>): string[] {
  if (event_id !== null) return [`The event ${event_id} is delivered once more, under the same webhook-id.`]
  const which = only_undelivered ? 'those that it has taken left out' : 'those that it has taken, too'
  return [`Events from ${from} to ${to} are delivered once more, a little at a time, ${which}.`]
}
