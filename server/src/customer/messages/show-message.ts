import { showMessage } from '../../core/mail/messages/messages.ts'
import { Message, MessageParams } from '../../core/mail/messages/wire.ts'
import { customerQuery } from '../operation.ts'

export const showMessageQuery = customerQuery({
  id: 'messages.show',
  path: '/projects/:project_id/messages/:id',
  pathOfKey: '/messages/:id',
  summary: 'Show a message',
  description: 'A message with its recipients and what became of them. Its content is not shown.',
  params: MessageParams,
  query: {},
  reads: 'mail',
  answer: Message,
  run: async ({ tx, projectId, domainId, params }) => ({
    answer: await showMessage(tx, projectId, params.id, domainId),
  }),
})
