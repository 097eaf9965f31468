import { deleteMember, lockMember, memberConfig, memberPerson } from '../../core/control/members/members.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteMemberOperation = adminOperation({
  id: 'members.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/members/:id',
  summary: 'Remove a member',
  description:
    'Removes a person from the project, or withdraws an invitation. The owner cannot be removed (`last_owner`).',
  params: ProjectItemParams,
  body: {},
  refusals: ['last_owner'],
  example: { reason: 'Left the company' },
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockMember(tx, project_id, id)
  },
  async run({ tx, target: before }) {
    await deleteMember(tx, before)
    return {
      audit: {
        projectId: before.project_id,
        change: { resource: 'member', id: before.id, before: memberConfig(before), after: null },
        subject: memberPerson(before),
      },
      effects: [
        before.user_id === null
          ? 'The invitation can no longer be used.'
          : 'The person loses access to the project immediately.',
      ],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
