import { showMessage } from '../../core/mail/messages/messages.ts'
import { Message } from '../../core/mail/messages/wire.ts'
import { adminQuery } from '../operation.ts'
import { ProjectMessageParams } from './parameters.ts'

export const showMessageQuery = adminQuery({
  id: 'messages.show',
  path: '/admin/projects/:project_id/messages/:id',
  summary: 'Show a message',
  description: 'A message with its recipients and the status of each. The content is not returned.',
  params: ProjectMessageParams,
  query: {},
  answer: Message,
  run: async ({ mailDbFor, params }) => ({
    answer: await mailDbFor(params.project_id).read((tx) => showMessage(tx, params.project_id, params.id)),
  }),
})
