import { showUsage, Usage } from '../../core/usage/usage.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showUsageQuery = customerQuery({
  id: 'usage.show',
  path: '/projects/:project_id/usage',
  pathOfKey: '/usage',
  summary: 'Show what was used of the plan',
  description:
    'Mails accepted today and this month against the limits of the plan in force, and what became of mail in the last 30 days.',
  params: NoParams,
  query: {},
  reads: 'mail',
  answer: Usage,
  run: async ({ tx, projectId }) => ({ answer: await showUsage(tx, projectId) }),
})
