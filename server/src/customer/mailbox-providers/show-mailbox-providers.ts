import { showMailboxProviders } from '../../core/mail/mailbox-providers/figures.ts'
import { FiguresQuery, MailboxProviders } from '../../core/mail/mailbox-providers/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showMailboxProvidersQuery = customerQuery({
  id: 'mailbox-providers.show',
  path: '/projects/:project_id/mailbox-providers',
  pathOfKey: '/mailbox-providers',
  summary: 'Show delivery figures by mailbox provider',
  description:
    "Returns the volume and the delivery, deferral, bounce, failure and complaint rates for each operator of mailboxes, such as Gmail, in a range of at most 90 days. Figures are kept for 90 days. The operator is derived from the domain of the address: a company's own domain is `other`, even if Google or Microsoft hosts its mail.",
  params: NoParams,
  query: FiguresQuery,
  runsIn: 'mail',
  answer: MailboxProviders,
  run: async ({ tx, projectId, query }) => ({ answer: await showMailboxProviders(tx, projectId, query) }),
})
