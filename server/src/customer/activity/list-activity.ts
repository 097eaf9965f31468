import Type from 'typebox'
import { Activity, activitySearch } from '../../core/control/activity/activity.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { timeRangeOf, timeRangeQuery } from '../../core/shared/time-range.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listActivityQuery = customerQuery({
  id: 'activity.list',
  path: '/projects/:project_id/activity',
  summary: "List the project's activity",
  description:
    'Returns the changes made by members and API keys, newest first: actor, time, client address, and the changed fields before and after, without secrets. Filters can be combined. Sending mail is not recorded here. Changes made by administrators are recorded in the audit log instead. Entries form a hash chain. They are kept for one year unless the operator configures a different retention period, and only the newest 50,000 are kept.',
  params: NoParams,
  query: {
    ...PageQuery,
    user_id: Type.Optional({ ...Id, description: 'The id of the user who made the changes.' }),
    ...timeRangeQuery('Changes made'),
  },
  answer: searchOf(Activity),
  async run({ tx, projectId, query: { user_id: userId, ...query } }) {
    return {
      answer: await activitySearch(tx, 'project', projectId, { ...query, userId, ...timeRangeOf(query) }),
    }
  },
})
