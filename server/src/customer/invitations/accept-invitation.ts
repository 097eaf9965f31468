import Type from 'typebox'
import { acceptInvitation, acceptInvitationTo } from '../../core/control/members/invitations.ts'
import { memberActivity, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const acceptInvitationOperation = customerOperation({
  id: 'invitations.accept',
  kind: 'command',
  runsIn: 'user',
  path: '/invitations/accept',
  summary: 'Accept an invitation',
  description:
    "Makes you a member of the project with the role specified in the invitation. `token` is the token from an invitation email, regardless of the address that the email was sent to. `id` is the id of an invitation from `invitations.list`, which lists invitations sent to your account's address. An invitation can be accepted once and expires after 14 days. If you do not have an account, use `auth.register-invited`.",
  params: NoParams,
  body: {
    token: Type.Optional(
      Type.String({ maxLength: 100, description: 'The token from the invitation email.' }),
    ),
    id: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'The id from `invitations.list`.',
      }),
    ),
  },
  refusals: ['not_found', 'already_exists'],
  example: { token: 'inv_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' },
  answer: Member,
  isOfUser: true,
  async run({ tx, user, body }) {
    const { token, id } = body
    if ((token === undefined) === (id === undefined)) {
      throw new PosternError('validation_failed', 'Send either "token" or "id".')
    }
    const row =
      token === undefined
        ? await acceptInvitationTo(tx, id as number, user.id)
        : await acceptInvitation(tx, token, user.id)
    const activity = { resource: 'member', id: row.id, before: null, after: memberActivity(row) }
    return { answer: memberView(row), activity, projectId: row.project_id, version: row.version }
  },
})
