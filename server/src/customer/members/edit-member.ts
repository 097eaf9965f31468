import { editMember, lockMember, memberActivity, memberView } from '../../core/control/members/members.ts'
import { AssignableRole, Member } from '../../core/control/members/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editMemberOperation = customerOperation({
  id: 'members.edit',
  kind: 'edit',
  path: '/projects/:project_id/members/:id',
  summary: "Change a member's role",
  description:
    "Changes a member's role. The owner's role cannot be changed (`last_owner`), and no member can be made the owner: only an administrator can transfer the project.",
  params: ItemParams,
  body: { role: AssignableRole },
  refusals: ['last_owner'],
  example: { role: 'viewer' },
  answer: Member,
  target: ({ tx, project, params }) => lockMember(tx, project.id, params.id),
  async run({ tx, target: before, body }) {
    const row = await editMember(tx, before, body.role)
    const activity = changeOf('member', before, row, memberActivity)
    return { answer: memberView(row), activity, version: row.version }
  },
})
