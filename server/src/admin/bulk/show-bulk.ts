import { bulkDetail, findBulk } from '../../core/control/bulk/bulk.ts'
import { BulkActionDetail } from '../../core/control/bulk/wire.ts'
import { adminQuery } from '../operation.ts'
import { BulkParams } from './parameters.ts'

export const showBulk = adminQuery({
  id: 'bulk.show',
  path: '/admin/bulk/:id',
  summary: 'Show a bulk action',
  description: 'One bulk action, with its progress and the projects for which the operation was rejected.',
  params: BulkParams,
  query: {},
  answer: BulkActionDetail,
  run: async ({ db, params: { id } }) => ({
    answer: await db.read(async (tx) => bulkDetail(tx, await findBulk(tx, id))),
  }),
})
