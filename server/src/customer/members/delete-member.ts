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
  summary: 'Remove a member or leave a project',
  description:
    'Removes a member from the project, or withdraws an invitation. Only owners and admins can remove other members. Every member except the owner can leave; removing the owner is rejected with `last_owner`.',
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
        'This requires the owner or admin role in the project. Other members can only remove themselves.',
      )
    }
    await deleteMember(tx, before)
    const activity = { resource: 'member', id: before.id, before: memberActivity(before), after: null }
    return { answer: null, activity, version: null }
  },
})
