import { cancelMessage } from '../../core/mail/messages/messages.ts'
import { Message, MessageParams } from '../../core/mail/messages/wire.ts'
import { asResponse } from '../../platform/http/response.ts'
import { mailOperation } from '../operation.ts'

export const cancelMessageOperation = mailOperation({
  id: 'messages.cancel',
  method: 'POST',
  path: '/projects/:project_id/messages/:id/cancel',
  pathOfKey: '/messages/:id/cancel',
  summary: 'Cancel a scheduled message',
  description:
    'Keeps a message that is still scheduled from being sent. Refused with `in_use` once it is on its way. What it took of the quota is not given back.',
  params: MessageParams,
  query: {},
  body: {},
  example: {},
  refusals: ['in_use'],
  success: { status: 200, means: 'Canceled.' },
  answer: Message,
  async run({ tx, projectId, domainId, params }) {
    return {
      answer: asResponse(200, await cancelMessage(tx, projectId, params.id, domainId)),
      activity: { resource: 'message', id: params.id, before: null, after: null },
    }
  },
})
