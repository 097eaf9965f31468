import Type from 'typebox'
import { lockProject } from '../../core/control/projects/projects.ts'
import {
  missingSuppression,
  seekSuppression,
  suppressionView,
} from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/mail/suppressions/wire.ts'
import { publishToMail } from '../../core/outbox/outbox.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteSuppressionOperation = adminOperation({
  id: 'suppressions.delete',
  kind: 'enqueue',
  method: 'DELETE',
  path: '/admin/projects/:project_id/suppressions/:address',
  summary: 'Delete a suppression of a project',
  description:
    'The project can send to the address again, some seconds after the answer. Only administrators can delete a suppression after a complaint: make sure first that the recipient wants the mail. If mail to the address bounces again, or its owner complains again, it is suppressed again. The answer is the suppression that is being deleted.',
  params: Type.Object(
    { ...ProjectParams.properties, address: SuppressedAddress },
    { additionalProperties: false },
  ),
  body: {},
  example: { reason: 'The recipient asked for the mail in ticket 4711' },
  answer: Suppression,
  hasVersion: false,
  preload: (mail, { project_id, address }) => seekSuppression(mail, project_id, address),
  async target(tx, { project_id }, suppression) {
    await lockProject(tx, project_id)
    return suppression ?? missingSuppression()
  },
  async run({ tx, params: { project_id }, target: suppression }) {
    const { address, reason, created_at } = suppression
    // The mail schema is another plane's to write.
    const seen = { address, reason, created_at: created_at.toISOString() }
    await publishToMail(tx, project_id, 'suppression.deleted', seen)
    return {
      audit: {
        projectId: project_id,
        change: { resource: 'suppression', id: project_id, before: { reason }, after: null },
        // The chain has a salted digest of the address, which can be erased.
        subject: { email: address, name: null },
      },
      effects: ['The project can send to this address again.'],
      warnings: reason === 'complaint' ? ['Its owner complained about mail of this project.'] : [],
      answer: suppressionView(suppression),
      version: null,
    }
  },
})
