import {
  addPlatformSuppression,
  platformSuppressionView,
} from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { PlatformSuppression } from '../../core/control/platform-suppressions/wire.ts'
import { SuppressedAddress } from '../../core/mail/suppressions/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { platformChange, queuedMailStays } from './consequences.ts'

export const createPlatformSuppressionOperation = adminOperation({
  id: 'platform-suppressions.create',
  kind: 'create',
  path: '/admin/suppressions',
  summary: 'Suppress an address for all projects',
  description:
    'Stops all projects from sending to an address, in cells within seconds. Mail that is already accepted is still sent. If the address is already on the list, the existing entry is returned unchanged. The `reason` is stored with the address; customers do not see it.',
  params: NoParams,
  body: { address: SuppressedAddress },
  refusals: ['limit_exceeded'],
  example: { address: 'someone@example.com', reason: 'Demands no mail from any customer, ticket 4711' },
  answer: PlatformSuppression,
  hasVersion: false,
  target: async () => null,
  async run({ tx, caps, body, reason }) {
    const { row, isNew } = await addPlatformSuppression(tx, caps, {
      address: body.address,
      reason: reason ?? '',
    })
    return {
      audit: isNew
        ? {
            projectId: null,
            // The reason is in the audit row itself.
            change: platformChange(null, {}),
            // The chain contains only a salted digest, so the address can be erased.
            subject: { email: row.address, name: null },
          }
        : unchanged,
      effects: isNew ? ['No project can send to this address any more.', queuedMailStays] : [],
      warnings: [],
      answer: platformSuppressionView(row),
      version: null,
      location: `/v1/admin/suppressions/${encodeURIComponent(row.address)}`,
    }
  },
})
