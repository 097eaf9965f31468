import {
  addSuppression,
  lockAndCountManual,
  suppressionView,
} from '../../core/mail/suppressions/suppressions.ts'
import { SuppressedAddress, Suppression } from '../../core/mail/suppressions/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireCap } from '../limits.ts'
import { customerOperation, unchanged } from '../operation.ts'

export const createSuppressionOperation = customerOperation({
  id: 'suppressions.create',
  kind: 'create',
  runsIn: 'mail',
  path: '/projects/:project_id/suppressions',
  pathOfKey: '/suppressions',
  summary: 'Suppress an address',
  description:
    'Stops the project from sending to an address. If the address is already suppressed, the existing suppression is returned unchanged. Returns `limit_exceeded` if `max_suppressions` would be exceeded. Only suppressions whose `reason` is `manual` count toward this limit.',
  params: NoParams,
  body: { address: SuppressedAddress },
  refusals: ['limit_exceeded'],
  example: { address: 'someone@example.com' },
  means: 'Suppressed.',
  answer: Suppression,
  async run({ tx, projectId, deps: { caps }, body }) {
    const { row, isNew } = await addSuppression(tx, projectId, body.address)
    if (isNew) {
      const count = await lockAndCountManual(tx, projectId, caps.max_suppressions + 1)
      requireCap(caps, 'max_suppressions', count, 'Delete one first, or ask the operator to raise the limit.')
    }
    const { address, reason } = row
    return {
      answer: suppressionView(row),
      activity: isNew
        ? { resource: 'suppression', id: null, before: null, after: { address, reason } }
        : unchanged,
      version: null,
      location: `/v1/projects/${projectId}/suppressions/${encodeURIComponent(row.address)}`,
    }
  },
})
