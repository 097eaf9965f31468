import Type from 'typebox'
import { beyond, projectBeyond } from '../../core/control/caps/caps.ts'
import { invitationsBeyond } from '../../core/control/members/invitations.ts'
import { createMember, memberConfig, memberPerson, memberView } from '../../core/control/members/members.ts'
import { AssignableRole, Member } from '../../core/control/members/wire.ts'
import { lockProject, planInForce } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'

export const createMemberOperation = adminOperation({
  id: 'members.create',
  kind: 'create',
  path: '/admin/projects/:project_id/members',
  summary: 'Add a member',
  description:
    "Adds the user with this address to the project, or invites the address if it does not belong to an account. Invitations count as members. A `reason` is required to exceed `max_pending_invitations`, the daily invitation limits per project and per address, or the current plan's `max_users`, and the audit entry records the exception.",
  params: ProjectParams,
  body: { email: Type.String({ maxLength: 254 }), role: AssignableRole },
  refusals: ['already_exists', 'limit_exceeded'],
  example: { email: 'grace@example.com', role: 'developer' },
  answer: Member,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, domains, caps, actorId, target: project, body }) {
    const { row, count } = await createMember(tx, domains.jobs, project.id, { ...body, invitedBy: actorId })
    // Read after the lock: the project may have changed while the request waited for it.
    const { max_users: limit } = await planInForce(tx, project.id)
    const isInvited = row.user_id === null
    const ofToday = isInvited ? await invitationsBeyond(tx, caps, project.id, null, row.email) : null
    const limitException =
      beyond('max_users', limit, count) ??
      (isInvited ? await projectBeyond(tx, caps, 'max_pending_invitations', project.id) : null) ??
      ofToday
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'member', id: row.id, before: null, after: memberConfig(row) },
        subject: memberPerson(row),
        limitException,
      },
      effects: [
        isInvited
          ? 'The address receives an invitation. The person becomes a member by accepting it.'
          : 'The account with this address becomes a member immediately.',
        `The project will have ${count} of ${limit} members in its plan.`,
      ],
      warnings: limitWarnings(limitException),
      answer: memberView(row),
      version: row.version,
      location: `/v1/admin/projects/${project.id}/members/${row.id}`,
    }
  },
})
