import Type from 'typebox'
import { listMessageEvents } from '../../core/mail/messages/messages.ts'
import { MessageEvent, MessageParams } from '../../core/mail/messages/wire.ts'
import { customerQuery } from '../operation.ts'

export const listMessageEventsQuery = customerQuery({
  id: 'messages.events',
  path: '/projects/:project_id/messages/:id/events',
  pathOfKey: '/messages/:id/events',
  summary: "List a message's events",
  description:
    'Returns the events of a message in chronological order, at most 1,000. Events are kept for 30 days unless the operator configures a different retention period.',
  params: MessageParams,
  query: {},
  runsIn: 'mail',
  answer: Type.Object({ data: Type.Array(MessageEvent) }, { additionalProperties: false }),
  run: async ({ tx, projectId, domainId, params }) => ({
    answer: { data: await listMessageEvents(tx, projectId, params.id, domainId) },
  }),
})
