import {
  findPlatformSuppression,
  platformSuppressionView,
} from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { PlatformSuppression } from '../../core/control/platform-suppressions/wire.ts'
import { adminQuery } from '../operation.ts'
import { AddressParams } from './address-params.ts'

export const showPlatformSuppression = adminQuery({
  id: 'platform-suppressions.show',
  path: '/admin/suppressions/:address',
  summary: 'Show an address suppressed for all projects',
  description: 'The reason and the time of the suppression.',
  params: AddressParams,
  query: {},
  answer: PlatformSuppression,
  run: async ({ db, params: { address } }) => ({
    answer: platformSuppressionView(await db.read((tx) => findPlatformSuppression(tx, address))),
  }),
})
