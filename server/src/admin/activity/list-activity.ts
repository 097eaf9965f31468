import { Activity, activityPage } from '../../core/control/activity/activity.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listActivityQuery = adminQuery({
  id: 'activity.list',
  path: '/admin/projects/:project_id/activity',
  summary: "List a project's activity",
  description:
    'Changes made by members and API keys, newest first. Changes made by administrators are in the audit log. Rows are deleted after `POSTERN_ACTIVITY_RETENTION_DAYS`, and at most the newest 50,000 rows are stored.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Activity),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      return { answer: await activityPage(tx, 'project', id, query) }
    }),
})
