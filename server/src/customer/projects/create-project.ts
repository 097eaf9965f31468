import { createOwnProject } from '../../core/control/projects/customers.ts'
import { projectView } from '../../core/control/projects/projects.ts'
import { Project, ProjectFields } from '../../core/control/projects/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { requireCap } from '../limits.ts'
import { userOperation } from '../operation.ts'

export const createProjectOperation = userOperation({
  id: 'projects.create',
  kind: 'create',
  path: '/projects',
  summary: 'Make a project of your own',
  description:
    'Makes a project whose owner you are, on the plan that the operator has set for this. Where none is set, only administrators make projects: `insufficient_role`. Refused with `limit_exceeded` beyond `max_projects_per_owner`.',
  body: { name: ProjectFields.name },
  refusals: ['insufficient_role', 'limit_exceeded', 'plan_inactive'],
  example: { name: 'Web shop' },
  answer: Project,
  async run({ tx, user, deps: { caps, planId }, body }) {
    if (planId === undefined) {
      throw new PosternError(
        'insufficient_role',
        'Here an administrator makes the projects. Ask for one of your own.',
      )
    }
    const { row, count } = await createOwnProject(tx, { name: body.name, userId: user.id, planId })
    requireCap(caps, 'max_projects_per_owner', count, 'Delete one first, or ask the operator for more.')
    return {
      answer: projectView(row),
      activity: { resource: 'project', id: row.id, before: null, after: { name: row.name } },
      projectId: row.id,
      version: row.version,
      location: `/v1/projects/${row.id}`,
    }
  },
})
