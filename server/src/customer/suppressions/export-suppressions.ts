import Type from 'typebox'
import { exportPage } from '../../core/mail/suppressions/suppressions.ts'
import { PageQuery } from '../../core/shared/pages.ts'
import { nullable } from '../../core/shared/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const exportSuppressionsQuery = customerQuery({
  id: 'suppressions.export',
  path: '/projects/:project_id/suppressions/export',
  pathOfKey: '/suppressions/export',
  summary: 'Export suppressions',
  description:
    'Returns the suppressed addresses as CSV (RFC 4180) with the columns `address`, `reason` and `created_at`, at most 10,000 lines at a time, in alphabetical order. An address that a spreadsheet would evaluate as a formula begins with an apostrophe, which `suppressions.import` removes. Only the first part has a header. Joined, the parts are one file, which `suppressions.import` accepts in parts of 10,000 lines.',
  params: NoParams,
  query: { cursor: PageQuery.cursor },
  runsIn: 'mail',
  answer: Type.Object(
    {
      csv: Type.String({ examples: ['address,reason,created_at\r\n'] }),
      next_cursor: nullable(Type.String({ description: 'Null in the last part.' })),
    },
    { title: 'ExportedSuppressions', additionalProperties: false },
  ),
  run: async ({ tx, projectId, query }) => ({ answer: await exportPage(tx, projectId, query.cursor) }),
})
