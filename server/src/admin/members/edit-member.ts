import {
  editMember,
  lockMember,
  memberConfig,
  memberPerson,
  memberView,
} from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

export const editMemberOperation = adminOperation({
  id: 'members.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/members/:id',
  summary: "Change a member's role",
  description: "The owner's role cannot be changed here (`last_owner`): transfer the project instead.",
  params: ProjectItemParams,
  body: { role: Member.properties.role },
  refusals: ['last_owner'],
  example: { role: 'viewer' },
  answer: Member,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockMember(tx, project_id, id)
  },
  async run({ tx, target: before, body }) {
    const after = await editMember(tx, before, body.role)
    return {
      audit:
        after === before
          ? unchanged
          : {
              projectId: after.project_id,
              change: {
                resource: 'member',
                id: after.id,
                before: memberConfig(before),
                after: memberConfig(after),
              },
              subject: memberPerson(after),
            },
      effects: after === before ? [] : [`The role ${after.role} applies from the person's next request.`],
      warnings: [],
      answer: memberView(after),
      version: after.version,
    }
  },
})
