import { Activity, activityPage } from '../../core/control/activity/activity.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listActivityQuery = customerQuery({
  id: 'activity.list',
  path: '/projects/:project_id/activity',
  summary: "List the project's activity",
  description:
    'Returns the changes made by members and API keys, newest first: actor, time, client address, and the changed fields before and after, without secrets. Sending mail is not recorded here. Changes made by administrators are recorded in the audit log instead. Entries form a hash chain. They are kept for one year unless the operator configures a different retention period, and only the newest 50,000 are kept.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(Activity),
  async run({ tx, projectId, query }) {
    return { answer: await activityPage(tx, 'project', projectId, query) }
  },
})
