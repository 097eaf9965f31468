import Type from 'typebox'
import { removeSuppression } from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress } from '../../core/mail/suppressions/wire.ts'
import { mailOperation } from '../operation.ts'

export const deleteSuppressionOperation = mailOperation({
  id: 'suppressions.delete',
  method: 'DELETE',
  path: '/projects/:project_id/suppressions/:address',
  pathOfKey: '/suppressions/:address',
  summary: 'Send to an address again',
  description:
    'The project can send to the address again. If mail to it bounces again, or its owner complains, it is suppressed again. Only an administrator of the service can delete a suppression whose `reason` is `complaint`; members and API keys get `insufficient_role`.',
  params: Type.Object({ address: SuppressedAddress }, { additionalProperties: false }),
  query: {},
  body: {},
  example: {},
  success: { status: 204, means: 'The suppression is deleted.' },
  async run({ tx, projectId, params }) {
    const { address, reason } = await removeSuppression(tx, projectId, params.address)
    return {
      answer: { status: 204, body: null, etag: null, location: null },
      activity: { resource: 'suppression', id: null, before: { address, reason }, after: null },
    }
  },
})
