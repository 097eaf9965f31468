import {
  addSuppression,
  lockAndCountManual,
  suppressionView,
} from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/mail/suppressions/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { asResponse } from '../../platform/http/response.ts'
import { requireCap } from '../limits.ts'
import { mailOperation, unchanged } from '../operation.ts'

export const createSuppressionOperation = mailOperation({
  id: 'suppressions.create',
  method: 'POST',
  path: '/projects/:project_id/suppressions',
  pathOfKey: '/suppressions',
  summary: 'Suppress an address',
  description:
    'From now on the project sends nothing to this address. One that is suppressed already stays as it is, and is the answer. Refused with `limit_exceeded` beyond `max_suppressions`, which counts those added by `suppressions.create`.',
  params: NoParams,
  query: {},
  body: { address: SuppressedAddress },
  refusals: ['limit_exceeded'],
  example: { address: 'someone@example.com' },
  success: { status: 201, means: 'Suppressed.' },
  answer: Suppression,
  async run({ tx, projectId, body }, { caps }) {
    const { row, isNew } = await addSuppression(tx, projectId, body.address)
    if (isNew) {
      const count = await lockAndCountManual(tx, projectId, caps.max_suppressions + 1)
      requireCap(caps, 'max_suppressions', count, 'Delete one first, or ask the operator for more.')
    }
    const location = `/v1/projects/${projectId}/suppressions/${encodeURIComponent(row.address)}`
    const { address, reason } = row
    return {
      answer: { ...asResponse(201, suppressionView(row)), location },
      activity: isNew
        ? { resource: 'suppression', id: null, before: null, after: { address, reason } }
        : unchanged,
    }
  },
})
