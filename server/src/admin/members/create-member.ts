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
    'Adds the user with this address to the project, or invites the address if no account has it. Invitations count as members. Beyond `max_users` of the plan in force, `max_pending_invitations`, or the invitations of a day for the project or the address, a `reason` is required, and the audit row records the exception.',
  params: ProjectParams,
  body: { email: Type.String({ maxLength: 254 }), role: AssignableRole },
  refusals: ['already_exists', 'limit_exceeded'],
  example: { email: 'grace@example.com', role: 'developer' },
  answer: Member,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, domains, caps, actorId, target: project, body }) {
    const { row, count } = await createMember(tx, domains.jobs, project.id, { ...body, invitedBy: actorId })
    // As it is now: the project's row may have been waited for.
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
          ? 'The address is invited by mail; the person becomes a member by joining.'
          : 'The account with this address is a member at once.',
        `The project then has ${count} members, of ${limit} that its plan allows.`,
      ],
      warnings: limitWarnings(limitException),
      answer: memberView(row),
      version: row.version,
      location: `/v1/admin/projects/${project.id}/members/${row.id}`,
    }
  },
})
