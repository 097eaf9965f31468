import { showUsage, Usage } from '../../core/usage/usage.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showUsageQuery = adminQuery({
  id: 'usage.show',
  path: '/admin/projects/:project_id/usage',
  summary: 'Show what a project has used of its plan',
  description:
    'Mails accepted today and this month against the limits of the plan in force, and what became of mail in the last 30 days.',
  params: ProjectParams,
  query: {},
  answer: Usage,
  run: async ({ mailOf, params: { project_id } }) => ({
    answer: await mailOf(project_id).read((tx) => showUsage(tx, project_id)),
  }),
})
