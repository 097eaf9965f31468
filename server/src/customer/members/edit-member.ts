import { editMember, lockMember, memberView } from '../../core/members/members.ts'
import { AssignableRole, Member } from '../../core/members/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const editMemberOperation = customerOperation({
  id: 'members.edit',
  kind: 'edit',
  path: '/projects/:project_id/members/:id',
  summary: "Change a member's role",
  description:
    "The owner's role cannot be changed (`last_owner`): an administrator transfers the project. Nobody can be made an owner here, so that nobody rises above whoever raises them.",
  params: ItemParams,
  body: { role: AssignableRole },
  refusals: ['last_owner'],
  example: { role: 'viewer' },
  answer: Member,
  target: ({ tx, project, params }) => lockMember(tx, project.id, params.id),
  async run({ tx, target: before, body }) {
    const row = await editMember(tx, before, body.role)
    return { answer: memberView(row), version: row.version }
  },
})
