import { cancelMessage } from '../../core/mail/messages/messages.ts'
import { Message, MessageParams } from '../../core/mail/messages/wire.ts'
import { customerOperation } from '../operation.ts'

export const cancelMessageOperation = customerOperation({
  id: 'messages.cancel',
  kind: 'command',
  runsIn: 'mail',
  path: '/projects/:project_id/messages/:id/cancel',
  pathOfKey: '/messages/:id/cancel',
  summary: 'Cancel a scheduled message',
  description:
    'Cancels a message that is waiting for its `send_at`. Returns `in_use` if it was not scheduled, or if sending has started. Canceling a message again changes nothing. The quota used by the message is not restored.',
  params: MessageParams,
  body: {},
  example: {},
  refusals: ['in_use'],
  means: 'Canceled.',
  answer: Message,
  async run({ tx, projectId, domainId, params }) {
    return {
      answer: await cancelMessage(tx, projectId, params.id, domainId),
      activity: { resource: 'message', id: params.id, before: null, after: null },
      version: null,
    }
  },
})
