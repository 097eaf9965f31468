import { showMessage } from '../../core/mail/messages/messages.ts'
import { Message, MessageParams } from '../../core/mail/messages/wire.ts'
import { customerQuery } from '../operation.ts'

export const showMessageQuery = customerQuery({
  id: 'messages.show',
  path: '/projects/:project_id/messages/:id',
  pathOfKey: '/messages/:id',
  summary: 'Show a message',
  description: 'Returns a message with its recipients and their status, without its content.',
  params: MessageParams,
  query: {},
  runsIn: 'mail',
  answer: Message,
  run: async ({ tx, projectId, domainId, params }) => ({
    answer: await showMessage(tx, projectId, params.id, domainId),
  }),
})
