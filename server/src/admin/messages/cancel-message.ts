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
    'Asks for a message that is still scheduled to be canceled. It is done after the answer: read the message again in some seconds, `status` tells. Refused with `in_use` once it is on its way. What it took of the quota is not given back.',
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
    // The mail schema is another plane's to write: what is asked for is done by the worker.
    await domains.jobs.send(tx, 'messages.cancel', { project_id, message_id: id })
    return {
      audit: {
        projectId: project_id,
        // Not that it is canceled: the worker may come too late.
        change: { resource: 'message', id, before: { status }, after: { status, is_cancel_requested: true } },
      },
      effects: [`Mails that are not sent: ${mails}.`],
      warnings: ['If its time comes within seconds, it may be sent all the same.'],
      answer: message,
      version: null,
    }
  },
})
