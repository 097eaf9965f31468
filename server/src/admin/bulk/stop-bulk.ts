import { lockBulk, stopBulk } from '../../core/control/bulk/bulk.ts'
import { BulkActionDetail } from '../../core/control/bulk/wire.ts'

import { adminOperation } from '../operation.ts'
import { BulkParams } from './parameters.ts'
import { resultOf } from './result.ts'

export const stopBulkOperation = adminOperation({
  id: 'bulk.stop',
  kind: 'command',
  path: '/admin/bulk/:id/stop',
  summary: 'Stop a bulk action',
  description:
    'Stops a running bulk action. Changes that were made stay. Stopping a stopped bulk action changes nothing.',
  params: BulkParams,
  body: {},
  refusals: ['already_ended'],
  example: { reason: 'The wrong plan was selected' },
  answer: BulkActionDetail,
  hasVersion: false,
  target: (tx, { id }) => lockBulk(tx, id),
  run: async ({ tx, target: before }) =>
    resultOf(tx, before, await stopBulk(tx, before, 'administrator'), 'No further projects are changed.'),
})
