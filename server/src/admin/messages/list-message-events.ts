import Type from 'typebox'
import { listMessageEvents } from '../../core/mail/messages/messages.ts'
import { MessageEvent } from '../../core/mail/messages/wire.ts'
import { adminQuery } from '../operation.ts'
import { ProjectMessageParams } from './parameters.ts'

export const listMessageEventsQuery = adminQuery({
  id: 'messages.events',
  path: '/admin/projects/:project_id/messages/:id/events',
  summary: "List a message's events",
  description: 'All events of a message, in chronological order.',
  params: ProjectMessageParams,
  query: {},
  answer: Type.Object({ data: Type.Array(MessageEvent) }, { additionalProperties: false }),
  run: async ({ mailDbFor, params }) => ({
    answer: {
      data: await mailDbFor(params.project_id).read((tx) =>
        listMessageEvents(tx, params.project_id, params.id),
      ),
    },
  }),
})
