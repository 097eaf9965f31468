import { findMailUsage, showUsage, Usage } from '../../core/mail/usage/usage.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showUsageQuery = adminQuery({
  id: 'usage.show',
  path: '/admin/projects/:project_id/usage',
  summary: "Show a project's usage",
  description:
    'Messages accepted today and this month compared with the current plan, the number of resources compared with their limits, and daily delivery counts for the last 30 days.',
  params: ProjectParams,
  query: {},
  answer: Usage,
  async run({ db, mailDbFor, caps, params: { project_id } }) {
    const mail = await mailDbFor(project_id).read((tx) => findMailUsage(tx, project_id, caps))
    return { answer: await db.read((tx) => showUsage(tx, project_id, caps, mail)) }
  },
})
