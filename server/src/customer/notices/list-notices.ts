import Type from 'typebox'
import { listNotices, noticeView } from '../../core/control/interventions/notices.ts'
import { Notice } from '../../core/control/interventions/wire.ts'
import { listOf, newestFirst, PageQuery, type Range } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listNoticesQuery = customerQuery({
  id: 'notices.list',
  path: '/projects/:project_id/notices',
  summary: 'List notices',
  description:
    'Returns the interventions of the operator in the project, newest first: warnings, paces, holds and locks, those in force and those that have ended.',
  params: NoParams,
  query: {
    ...PageQuery,
    in_force: Type.Optional(
      Type.Boolean({ description: 'If true, only interventions that have not ended. Default: false.' }),
    ),
  },
  answer: listOf(Notice),
  async run({ tx, projectId, query }) {
    const inForce = query.in_force === true
    const list = (range: Range) => listNotices(tx, projectId, { ...range, inForce })
    return { answer: await newestFirst(query, list, noticeView) }
  },
})
