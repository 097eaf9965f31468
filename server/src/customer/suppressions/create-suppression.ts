import { addSuppression, suppressionView } from '../../core/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/suppressions/wire.ts'
import { asAnswer } from '../../platform/http/answer.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { ownOperation } from '../operation.ts'

export const createSuppressionOperation = ownOperation({
  id: 'suppressions.create',
  method: 'POST',
  path: '/projects/:project_id/suppressions',
  pathOfKey: '/suppressions',
  summary: 'Suppress an address',
  description:
    'From now on the project sends nothing to this address. One that is suppressed already stays as it is, and is the answer.',
  params: NoParams,
  query: {},
  body: { address: SuppressedAddress },
  example: { address: 'someone@example.com' },
  success: { status: 201, means: 'Suppressed.' },
  answer: Suppression,
  async handle({ projectId, body }, { cellOf }) {
    const { row } = await cellOf(projectId).mail.transaction((tx) =>
      addSuppression(tx, projectId, body.address),
    )
    const location = `/v1/projects/${projectId}/suppressions/${encodeURIComponent(row.address)}`
    return { ...asAnswer(201, suppressionView(row)), location }
  },
})
