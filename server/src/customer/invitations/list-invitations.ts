import { listInvitationsTo, pendingView } from '../../core/control/members/invitations.ts'
import { PendingInvitation } from '../../core/control/members/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { userQuery } from '../operation.ts'

export const listInvitationsQuery = userQuery({
  id: 'invitations.list',
  path: '/invitations',
  summary: 'List your pending invitations',
  description:
    'Invitations that went to the address of your account and were not accepted yet, newest first. An invitation expires after 14 days.',
  query: PageQuery,
  answer: listOf(PendingInvitation),
  async run({ tx, user, query }) {
    return {
      answer: await newestFirst(query, (range) => listInvitationsTo(tx, user.email, range), pendingView),
    }
  },
})
