import { Activity, activityPage } from '../../core/control/activity/activity.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listActivityQuery = customerQuery({
  id: 'activity.list',
  path: '/projects/:project_id/activity',
  summary: "List the project's activity",
  description:
    'What members and API keys have changed in the project, newest first: who, when, from where, and the changed fields before and after, without secrets. Sending mail is not in it. What an administrator changes is in the audit and not here. Rows form a hash chain. They are kept for a year unless the operator has set another time, at most the newest 50,000.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Activity),
  async run({ tx, projectId, query }) {
    return { answer: await activityPage(tx, 'project', projectId, query) }
  },
})
