import { listInvitationsTo, pendingView } from '../../core/control/members/invitations.ts'
import { PendingInvitation } from '../../core/control/members/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listInvitationsQuery = customerQuery({
  id: 'invitations.list',
  runsIn: 'user',
  path: '/invitations',
  summary: 'List your pending invitations',
  description:
    "Returns the pending invitations sent to your account's address that `invitations.accept` would accept, newest first. An invitation expires after 14 days. The list is empty if the address is not verified: use the link in the email. Invitations to projects that you are already a member of are omitted.",
  params: NoParams,
  query: PageQuery,
  answer: listOf(PendingInvitation),
  async run({ tx, user, query }) {
    return {
      answer: await newestFirst(query, (range) => listInvitationsTo(tx, user.id, range), pendingView),
    }
  },
})
