import Type from 'typebox'
import { removeSuppression } from '../../core/suppressions/suppressions.ts'
import { SuppressedAddress } from '../../core/suppressions/wire.ts'
import { ownOperation } from '../operation.ts'

export const deleteSuppressionOperation = ownOperation({
  id: 'suppressions.delete',
  method: 'DELETE',
  path: '/projects/:project_id/suppressions/:address',
  pathOfKey: '/suppressions/:address',
  summary: 'Send to an address again',
  description:
    'The address is suppressed no more. If mail to it bounces again, or its owner complains, it will be.',
  params: Type.Object({ address: SuppressedAddress }, { additionalProperties: false }),
  query: {},
  body: {},
  example: {},
  success: { status: 204, means: 'It is suppressed no more.' },
  async handle({ projectId, params }, { cellOf }) {
    await cellOf(projectId).mail.transaction((tx) => removeSuppression(tx, projectId, params.address))
    return { status: 204, body: null, etag: null, location: null }
  },
})
