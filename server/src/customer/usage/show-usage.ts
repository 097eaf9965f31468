import { findMailUsage, type MailUsage, showUsage, Usage } from '../../core/mail/usage/usage.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showUsageQuery = customerQuery({
  id: 'usage.show',
  path: '/projects/:project_id/usage',
  pathOfKey: '/usage',
  summary: 'Show what was used of the limits',
  description:
    'Mails accepted today and this month against the plan in force, how many things the project has of how many allowed, and what became of mail in the last 30 days.',
  params: NoParams,
  query: {},
  answer: Usage,
  preload: (mail, projectId, { caps }): Promise<MailUsage> => findMailUsage(mail, projectId, caps),
  run: async ({ tx, projectId, preloaded, deps: { caps } }) => ({
    answer: await showUsage(tx, projectId, caps, preloaded),
  }),
})
