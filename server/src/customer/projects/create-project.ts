import { createOwnProject } from '../../core/control/projects/customers.ts'
import { projectView } from '../../core/control/projects/projects.ts'
import { Project, ProjectFields } from '../../core/control/projects/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireCap } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createProjectOperation = customerOperation({
  id: 'projects.create',
  kind: 'create',
  runsIn: 'user',
  path: '/projects',
  summary: 'Create a project',
  description:
    'Creates a project on the plan configured by the operator, with you as its owner. If no plan is configured, only administrators can create projects (`insufficient_role`). Returns `limit_exceeded` if `max_projects_per_owner` would be exceeded.',
  params: NoParams,
  body: { name: ProjectFields.name },
  refusals: ['insufficient_role', 'limit_exceeded', 'plan_inactive'],
  example: { name: 'Web shop' },
  answer: Project,
  async run({ tx, user, deps: { caps, planId }, body }) {
    if (planId === undefined) {
      throw new PosternError(
        'insufficient_role',
        'Only administrators can create projects on this installation. Ask an administrator to create one.',
      )
    }
    const { row, count } = await createOwnProject(tx, { name: body.name, userId: user.id, planId })
    requireCap(
      caps,
      'max_projects_per_owner',
      count,
      'Delete one first, or ask the operator to raise the limit.',
    )
    return {
      answer: projectView(row),
      activity: { resource: 'project', id: row.id, before: null, after: { name: row.name } },
      projectId: row.id,
      version: row.version,
      location: `/v1/projects/${row.id}`,
    }
  },
})
