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
  summary: "Delete a project's suppression",
  description:
    'Deletes the suppression. The project can send to the address again within seconds. Only administrators can delete a suppression caused by a complaint; first make sure that the recipient wants the mail. If mail to the address bounces or its owner complains, the address is suppressed again. The response contains the deleted suppression.',
  params: Type.Object(
    { ...ProjectParams.properties, address: SuppressedAddress },
    { additionalProperties: false },
  ),
  body: {},
  example: { reason: 'The recipient requested the mail, ticket 4711' },
  answer: Suppression,
  hasVersion: false,
  preload: (mail, { project_id, address }) => seekSuppression(mail, project_id, address),
  async target(tx, { project_id }, suppression) {
    await lockProject(tx, project_id)
    return suppression ?? missingSuppression()
  },
  async run({ tx, params: { project_id }, target: suppression }) {
    const { address, reason, created_at } = suppression
    // This plane cannot write the mail schema.
    const seen = { address, reason, created_at: created_at.toISOString() }
    await publishToMail(tx, project_id, 'suppression.deleted', seen)
    return {
      audit: {
        projectId: project_id,
        change: { resource: 'suppression', id: project_id, before: { reason }, after: null },
        // The chain contains only a salted digest, so the address can be erased.
        subject: { email: address, name: null },
      },
      effects: ['The project can send to this address again.'],
      warnings: reason === 'complaint' ? ['The recipient complained about mail from this project.'] : [],
      answer: suppressionView(suppression),
      version: null,
    }
  },
})
