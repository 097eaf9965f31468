import { lockProject } from '../../core/control/projects/projects.ts'
import { findMessage, missingMessage, requireScheduled } from '../../core/mail/messages/messages.ts'
import { Message } from '../../core/mail/messages/wire.ts'
import { adminOperation } from '../operation.ts'
import { ProjectMessageParams } from './parameters.ts'

export const cancelMessageOperation = adminOperation({
  id: 'messages.cancel',
  kind: 'command',
  path: '/admin/projects/:project_id/messages/:id/cancel',
  summary: 'Cancel a scheduled message',
  description:
    'Requests the cancellation of a scheduled message. Cancellation is asynchronous: read the message again a few seconds later and check its `status`. Returns `in_use` if sending has started. The quota used by the message is not restored.',
  params: ProjectMessageParams,
  body: {},
  refusals: ['in_use'],
  example: { reason: 'Sent to the wrong list' },
  answer: Message,
  hasVersion: false,
  preload: (mail, { project_id, id }) => findMessage(mail, project_id, id),
  async target(tx, { project_id, id }, message) {
    await lockProject(tx, project_id)
    return message ?? missingMessage(project_id, id)
  },
  async run({ tx, domains, target: message }) {
    const { id, project_id, status } = message
    const mails = requireScheduled(message)
    // This plane cannot write the mail schema: a worker cancels the message.
    await domains.jobs.send(tx, 'messages.cancel', { project_id, message_id: id })
    return {
      audit: {
        projectId: project_id,
        // Not recorded as canceled: the worker may be too late.
        change: { resource: 'message', id, before: { status }, after: { status, is_cancel_requested: true } },
      },
      effects: [`Recipients who will not receive the message: ${mails}.`],
      warnings: ['If the message is due within seconds, it might still be sent.'],
      answer: message,
      version: null,
    }
  },
})
