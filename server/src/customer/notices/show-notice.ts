import { findNotice, noticeView } from '../../core/control/interventions/notices.ts'
import { Notice } from '../../core/control/interventions/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showNotice = customerQuery({
  id: 'notices.show',
  path: '/projects/:project_id/notices/:id',
  summary: 'Show a notice',
  description: 'Returns one intervention in the project, in force or ended.',
  params: ItemParams,
  query: {},
  answer: Notice,
  run: async ({ tx, projectId, params }) => ({
    answer: noticeView(await findNotice(tx, projectId, params.id)),
  }),
})
