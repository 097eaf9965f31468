import Type from 'typebox'
import { findSuppression, suppressionView } from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/mail/suppressions/wire.ts'
import { customerQuery } from '../operation.ts'

export const showSuppressionQuery = customerQuery({
  id: 'suppressions.show',
  path: '/projects/:project_id/suppressions/:address',
  pathOfKey: '/suppressions/:address',
  summary: 'Show a suppressed address',
  description: 'Returns the reason and the time of a suppression.',
  params: Type.Object({ address: SuppressedAddress }, { additionalProperties: false }),
  query: {},
  runsIn: 'mail',
  answer: Suppression,
  run: async ({ tx, projectId, params }) => ({
    answer: suppressionView(await findSuppression(tx, projectId, params.address)),
  }),
})
