import { deleteMember, lockMember, memberActivity } from '../../core/control/members/members.ts'
import { PosternError } from '../../platform/errors.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { userOf } from '../caller.ts'
import { customerOperation } from '../operation.ts'
import { isManager } from '../roles.ts'

export const deleteMemberOperation = customerOperation({
  id: 'members.delete',
  kind: 'delete',
  path: '/projects/:project_id/members/:id',
  summary: 'Remove a member, or leave',
  description:
    'Takes a person out of the project, or withdraws an invitation; that is for owners and admins. Everybody may take themselves out. The owner stays (`last_owner`).',
  params: ItemParams,
  body: {},
  refusals: ['last_owner'],
  example: {},
  target: ({ tx, project, params }) => lockMember(tx, project.id, params.id),
  async run({ tx, caller, target: before }) {
    const isSelf = userOf(caller).id === before.user_id
    if (!isSelf && !(caller.kind === 'member' && isManager(caller.role))) {
      throw new PosternError(
        'insufficient_role',
        'This requires the role owner or admin in the project. Other members can only remove themselves.',
      )
    }
    await deleteMember(tx, before)
    const activity = { resource: 'member', id: before.id, before: memberActivity(before), after: null }
    return { answer: null, activity, version: null }
  },
})
