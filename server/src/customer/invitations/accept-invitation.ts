import Type from 'typebox'
import { acceptInvitation } from '../../core/members/invitations.ts'
import { memberView } from '../../core/members/members.ts'
import { Member } from '../../core/members/wire.ts'
import { userOperation } from '../operation.ts'

export const acceptInvitationOperation = userOperation({
  id: 'invitations.accept',
  kind: 'ask',
  path: '/invitations/accept',
  summary: 'Accept an invitation',
  description:
    'Makes you a member of the project that the invitation is to, in the role it was given. The token is that of the invitation mail, good once and for 14 days, whatever address it went to. Whoever has no account yet uses `auth.join`.',
  body: {
    token: Type.String({ maxLength: 100, description: 'As it stands in the mail.' }),
  },
  refusals: ['not_found', 'already_exists'],
  example: { token: 'inv_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' },
  answer: Member,
  async run({ tx, user, body }) {
    const row = await acceptInvitation(tx, body.token, user.id)
    return { answer: memberView(row), version: row.version }
  },
})
