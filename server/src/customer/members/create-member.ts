import Type from 'typebox'
import { createMember, memberView } from '../../core/members/members.ts'
import { AssignableRole, Member } from '../../core/members/wire.ts'
import { refuseLocked } from '../../core/projects/customers.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { userOf } from '../caller.ts'
import { requireProjectCap, requireRoom } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createMemberOperation = customerOperation({
  id: 'members.create',
  kind: 'create',
  path: '/projects/:project_id/members',
  summary: 'Add or invite a member',
  description:
    'Adds the user with this address to the project, or invites the address if nobody has an account under it: the invitation is mailed and is good for 14 days. Invitations count. Refused with `limit_exceeded` beyond `max_users` of the plan in force, or `max_pending_invitations` (`usage.show`).',
  params: NoParams,
  body: { email: Type.String({ maxLength: 254 }), role: AssignableRole },
  refusals: ['already_exists', 'limit_exceeded', 'project_locked'],
  example: { email: 'grace@example.com', role: 'developer' },
  answer: Member,
  async run({ tx, project, caller, deps, body }) {
    // Nobody is mailed in the name of a project that may mail nobody.
    refuseLocked(project.is_locked)
    const invitedBy = userOf(caller).id
    const { row, count } = await createMember(tx, deps.domains.jobs, project.id, { ...body, invitedBy })
    await requireRoom(tx, project.id, 'max_users', count)
    if (row.user_id === null) await requireProjectCap(tx, deps.caps, 'max_pending_invitations', project.id)
    return {
      answer: memberView(row),
      version: row.version,
      location: `/v1/projects/${project.id}/members/${row.id}`,
    }
  },
})
