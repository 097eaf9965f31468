import { requireProject } from '../../core/control/projects/projects.ts'
import { showMailboxProviders } from '../../core/mail/mailbox-providers/figures.ts'
import { FiguresQuery, MailboxProviders } from '../../core/mail/mailbox-providers/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showMailboxProvidersQuery = adminQuery({
  id: 'mailbox-providers.show',
  path: '/admin/projects/:project_id/mailbox-providers',
  summary: "Show a project's delivery figures by mailbox provider",
  description:
    "The project's volume and its delivery, deferral, bounce, failure and complaint rates for each operator of mailboxes, such as Gmail, in a range of at most 90 days. Figures are kept for 90 days. The operator is derived from the domain of the address: a company's own domain is `other`, even if Google or Microsoft hosts its mail.",
  params: ProjectParams,
  query: FiguresQuery,
  answer: MailboxProviders,
  run: ({ mailDbFor, params: { project_id }, query }) =>
    mailDbFor(project_id).read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await showMailboxProviders(tx, project_id, query) }
    }),
})
