import { findMailUsage, type MailUsage, showUsage, Usage } from '../../core/mail/usage/usage.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showUsageQuery = customerQuery({
  id: 'usage.show',
  path: '/projects/:project_id/usage',
  pathOfKey: '/usage',
  summary: 'Show usage and limits',
  description:
    'Returns the messages accepted today and this month compared with the current plan, the number of resources compared with their limits, and the delivery results of the last 30 days.',
  params: NoParams,
  query: {},
  answer: Usage,
  preload: (mail, { projectId, deps }): Promise<MailUsage> => findMailUsage(mail, projectId, deps.caps),
  run: async ({ tx, projectId, preloaded, deps: { caps } }) => ({
    answer: await showUsage(tx, projectId, caps, preloaded),
  }),
})
