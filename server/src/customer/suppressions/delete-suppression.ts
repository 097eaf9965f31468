import Type from 'typebox'
import { removeSuppression } from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress } from '../../core/mail/suppressions/wire.ts'
import { customerOperation } from '../operation.ts'

export const deleteSuppressionOperation = customerOperation({
  id: 'suppressions.delete',
  kind: 'delete',
  runsIn: 'mail',
  path: '/projects/:project_id/suppressions/:address',
  pathOfKey: '/suppressions/:address',
  summary: 'Delete a suppression',
  description:
    'Allows the project to send to the address again. If mail to the address bounces again, or the recipient complains, the address is suppressed again. Only an administrator of the service can delete a suppression whose `reason` is `complaint`; members and API keys get `insufficient_role`.',
  params: Type.Object({ address: SuppressedAddress }, { additionalProperties: false }),
  body: {},
  example: {},
  means: 'The suppression is deleted.',
  async run({ tx, projectId, params }) {
    const { address, reason } = await removeSuppression(tx, projectId, params.address)
    return {
      answer: null,
      activity: { resource: 'suppression', id: null, before: { address, reason }, after: null },
      version: null,
    }
  },
})
