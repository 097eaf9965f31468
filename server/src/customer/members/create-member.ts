import Type from 'typebox'
import { inviteMember, memberActivity, memberView } from '../../core/control/members/members.ts'
import { AssignableRole, Member } from '../../core/control/members/wire.ts'
import { refuseLocked } from '../../core/control/projects/customers.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { userOf } from '../caller.ts'
import { requireInvitationCaps, requireProjectCap, requireRoom } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createMemberOperation = customerOperation({
  id: 'members.create',
  kind: 'create',
  path: '/projects/:project_id/members',
  summary: 'Invite a member',
  description:
    "Invites an address to the project. The response is the same whether or not the address has an account; the person becomes a member by accepting the invitation. The invitation is sent by email and expires after 14 days. Invitations count as members. Returns `already_exists` if the address is already invited or belongs to a member. Returns `limit_exceeded` if one of these limits would be exceeded: `max_pending_invitations` (see `usage.show`), the current plan's `max_users`, or the daily limits `max_invitations_per_project_per_day`, `max_invitations_per_user_per_day` and `max_invitations_per_address_per_day`.",
  params: NoParams,
  body: { email: Type.String({ maxLength: 254 }), role: AssignableRole },
  refusals: ['already_exists', 'limit_exceeded', 'project_locked'],
  example: { email: 'grace@example.com', role: 'developer' },
  answer: Member,
  async run({ tx, project, caller, deps, body }) {
    // A locked project cannot send, so no email is sent on its behalf.
    refuseLocked(project.is_locked)
    const invitedBy = userOf(caller).id
    const { row, count } = await inviteMember(tx, deps.domains.jobs, project.id, { ...body, invitedBy })
    await requireRoom(tx, project.id, 'max_users', count)
    await requireProjectCap(tx, deps.caps, 'max_pending_invitations', project.id)
    await requireInvitationCaps(tx, deps.caps, project.id, invitedBy, row.email)
    return {
      answer: memberView(row),
      activity: { resource: 'member', id: row.id, before: null, after: memberActivity(row) },
      version: row.version,
      location: `/v1/projects/${project.id}/members/${row.id}`,
    }
  },
})
