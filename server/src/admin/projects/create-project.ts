import { createProject, projectRecord, projectView } from '../../core/control/projects/projects.ts'
import { Project, ProjectFields } from '../../core/control/projects/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { ownerBeyondLimit } from './owner-limit.ts'
import { roleChanges } from './role-changes.ts'

export const createProjectOperation = adminOperation({
  id: 'projects.create',
  kind: 'create',
  path: '/admin/projects',
  summary: 'Create a project',
  description:
    'Creates a project on an active plan for a user, who becomes its owner. A `reason` is required to exceed `max_projects_per_owner`, and the audit entry records the exception.',
  params: NoParams,
  body: { name: ProjectFields.name, user_id: ProjectFields.user_id, plan_id: ProjectFields.plan_id },
  refusals: ['plan_inactive', 'limit_exceeded'],
  example: { name: 'Acme', user_id: 7, plan_id: 2 },
  answer: Project,
  target: async () => null,
  async run({ tx, caps, body }) {
    const { row, members } = await createProject(tx, body)
    const limitException = await ownerBeyondLimit(tx, caps, row, members)
    return {
      audit: {
        projectId: row.id,
        change: { resource: 'project', id: row.id, before: null, after: projectRecord(row) },
        related: roleChanges(members),
        limitException,
      },
      effects: [`User ${row.user_id} becomes the owner.`, `The plan "${row.plan.name}" applies immediately.`],
      warnings: limitWarnings(limitException),
      answer: projectView(row),
      views: { before: null, after: projectView(row) },
      version: row.version,
      location: `/v1/admin/projects/${row.id}`,
    }
  },
})
