import {
  deletePlatformSuppression,
  lockPlatformSuppression,
  platformSuppressionView,
} from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { PlatformSuppression } from '../../core/control/platform-suppressions/wire.ts'
import { adminOperation } from '../operation.ts'
import { AddressParams } from './address-params.ts'
import { platformChange } from './consequences.ts'

export const deletePlatformSuppressionOperation = adminOperation({
  id: 'platform-suppressions.delete',
  kind: 'command',
  method: 'DELETE',
  path: '/admin/suppressions/:address',
  summary: 'Delete an address from the list for all projects',
  description:
    "Allows projects to send to the address again, in cells within seconds. A project's own suppression of the address stays. The response contains the deleted entry.",
  params: AddressParams,
  body: {},
  example: { reason: 'The recipient has withdrawn the demand, ticket 4712' },
  answer: PlatformSuppression,
  hasVersion: false,
  target: (tx, { address }) => lockPlatformSuppression(tx, address),
  async run({ tx, target: row }) {
    await deletePlatformSuppression(tx, row)
    return {
      audit: {
        projectId: null,
        change: platformChange({ reason: row.reason }, null),
        // The chain contains only a salted digest, so the address can be erased.
        subject: { email: row.address, name: null },
      },
      effects: ['Projects that have not suppressed this address themselves can send to it again.'],
      warnings: [],
      answer: platformSuppressionView(row),
      version: null,
    }
  },
})
