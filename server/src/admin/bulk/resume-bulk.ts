import { lockBulk, resumeBulk } from '../../core/control/bulk/bulk.ts'
import { BulkActionDetail } from '../../core/control/bulk/wire.ts'
import { lockUserRow } from '../../core/control/users/users.ts'
import { adminOperation } from '../operation.ts'
import { BulkParams } from './parameters.ts'
import { resultOf } from './result.ts'

export const resumeBulkOperation = adminOperation({
  id: 'bulk.resume',
  kind: 'command',
  path: '/admin/bulk/:id/resume',
  summary: 'Resume a bulk action',
  description:
    'Resumes a stopped bulk action. It continues with the projects selected at the start, and with the rights of the administrator who started it. Resuming a running bulk action changes nothing. An administrator can have one running bulk action. Requires two-factor authentication within the last 10 minutes; a dry run does not.',
  params: BulkParams,
  body: {},
  needsRecentSecondFactor: true,
  refusals: ['already_ended'],
  example: { reason: 'Checked with the customer' },
  answer: BulkActionDetail,
  hasVersion: false,
  async target(tx, { id }) {
    const bulk = await lockBulk(tx, id)
    await lockUserRow(tx, bulk.started_by)
    return bulk
  },
  run: async ({ tx, target: before }) =>
    resultOf(
      tx,
      before,
      await resumeBulk(tx, before),
      `Projects that are left: ${before.matched - before.changed - before.unchanged - before.refused}.`,
    ),
})
