import { Activity, activityPage } from '../../core/control/activity/activity.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listOf, PageQuery } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listActivityQuery = adminQuery({
  id: 'activity.list',
  path: '/admin/projects/:project_id/activity',
  summary: 'List the activity of a project',
  description:
    'What members and API keys have changed in the project, newest first. What administrators change is in the audit. Rows are deleted after `POSTERN_ACTIVITY_RETENTION_DAYS`, and at most the newest 50,000 are kept.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Activity),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      return { answer: await activityPage(tx, 'project', id, query) }
    }),
})
