import { platformSuppressionsPage } from '../../core/control/platform-suppressions/platform-suppressions.ts'
import { PlatformSuppression } from '../../core/control/platform-suppressions/wire.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listPlatformSuppressionsQuery = adminQuery({
  id: 'platform-suppressions.list',
  path: '/admin/suppressions',
  summary: 'List the addresses suppressed for all projects',
  description: 'Addresses to which no project can send, in alphabetical order.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(PlatformSuppression),
  run: async ({ db, query }) => ({ answer: await db.read((tx) => platformSuppressionsPage(tx, query)) }),
})
