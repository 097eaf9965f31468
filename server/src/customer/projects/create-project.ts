import { createOwnProject, customerProjectView } from '../../core/control/projects/customers.ts'
import { CustomerProject, ProjectFields } from '../../core/control/projects/wire.ts'
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
    'Creates a project on the plan configured by the operator, with you as its owner. The operator also decides whether new projects can use its own MTAs (`allow_service_mta`). If no plan is configured, only administrators can create projects (`insufficient_role`). Returns `limit_exceeded` if `max_projects_per_owner` would be exceeded.',
  params: NoParams,
  body: { name: ProjectFields.name },
  refusals: ['insufficient_role', 'limit_exceeded', 'plan_inactive'],
  example: { name: 'Web shop' },
  answer: CustomerProject,
  async run({ tx, user, deps: { caps, newProjects }, body }) {
    if (newProjects.planId === undefined) {
      throw new PosternError(
        'insufficient_role',
        'Only administrators can create projects on this installation. Ask an administrator to create one.',
      )
    }
    const { planId, allowServiceMta } = newProjects
    const { row, count } = await createOwnProject(tx, {
      name: body.name,
      userId: user.id,
      planId,
      allowServiceMta,
    })
    requireCap(
      caps,
      'max_projects_per_owner',
      count,
      'Delete one first, or ask the operator to raise the limit.',
    )
    return {
      answer: customerProjectView(row, 'owner'),
      activity: { resource: 'project', id: row.id, before: null, after: { name: row.name } },
      projectId: row.id,
      version: row.version,
      location: `/v1/projects/${row.id}`,
    }
  },
})
