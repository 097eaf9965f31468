import { customerProjectView } from '../../core/control/projects/customers.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { CustomerProject } from '../../core/control/projects/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { roleOf } from '../caller.ts'
import { customerQuery } from '../operation.ts'

export const showProject = customerQuery({
  id: 'projects.show',
  path: '/projects/:project_id',
  summary: 'Show a project',
  description: 'Returns a project that you are a member of, with your role and its current plan.',
  params: NoParams,
  query: {},
  answer: CustomerProject,
  hasVersion: true,
  async run({ tx, caller, projectId }) {
    const row = await findProject(tx, projectId)
    return { answer: customerProjectView(row, roleOf(caller)), version: row.version }
  },
})
