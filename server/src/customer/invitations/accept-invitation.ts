import Type from 'typebox'
import { acceptInvitation, acceptInvitationTo } from '../../core/control/members/invitations.ts'
import { memberActivity, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { userOperation } from '../operation.ts'

export const acceptInvitationOperation = userOperation({
  id: 'invitations.accept',
  kind: 'command',
  path: '/invitations/accept',
  summary: 'Accept an invitation',
  description:
    'Makes you a member of the project that the invitation is to, in the role it was given. By `token`: that of the invitation mail, whatever address it went to. By `id`: an invitation of `invitations.list`, which went to the address of your account. An invitation can be accepted once and expires after 14 days. A person without an account uses `auth.register-invited`.',
  body: {
    token: Type.Optional(Type.String({ maxLength: 100, description: 'As it stands in the mail.' })),
    id: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'As it is listed.' }),
    ),
  },
  refusals: ['not_found', 'already_exists'],
  example: { token: 'inv_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' },
  answer: Member,
  isOfUser: true,
  async run({ tx, user, body }) {
    const { token, id } = body
    if ((token === undefined) === (id === undefined)) {
      throw new PosternError('validation_failed', 'Give either "token" or "id".')
    }
    const row =
      token === undefined
        ? await acceptInvitationTo(tx, id as number, user.id)
        : await acceptInvitation(tx, token, user.id)
    const activity = { resource: 'member', id: row.id, before: null, after: memberActivity(row) }
    return { answer: memberView(row), activity, projectId: row.project_id, version: row.version }
  },
})
