import { suppressionsPage } from '../../core/mail/suppressions/suppressions.ts'
import { Suppression } from '../../core/mail/suppressions/wire.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listSuppressionsQuery = customerQuery({
  id: 'suppressions.list',
  path: '/projects/:project_id/suppressions',
  pathOfKey: '/suppressions',
  summary: 'List suppressed addresses',
  description: 'Returns the addresses to which the project does not send, in alphabetical order.',
  params: NoParams,
  query: PageQuery,
  runsIn: 'mail',
  answer: listOf(Suppression),
  run: async ({ tx, projectId, query }) => ({ answer: await suppressionsPage(tx, projectId, query) }),
})
