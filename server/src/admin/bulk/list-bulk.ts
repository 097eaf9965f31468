import { bulkPage } from '../../core/control/bulk/bulk.ts'
import { BulkAction } from '../../core/control/bulk/wire.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listBulkQuery = adminQuery({
  id: 'bulk.list',
  path: '/admin/bulk',
  summary: 'List bulk actions',
  description: 'Bulk actions, newest first. They are kept for 90 days after they finished or were stopped.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(BulkAction),
  run: async ({ db, query }) => ({ answer: await db.read((tx) => bulkPage(tx, query)) }),
})
