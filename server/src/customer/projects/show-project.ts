import { findProject, projectView } from '../../core/control/projects/projects.ts'
import { Project } from '../../core/control/projects/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showProject = customerQuery({
  id: 'projects.show',
  path: '/projects/:project_id',
  summary: 'Show a project',
  description: 'Returns a project that you are a member of, with its current plan.',
  params: NoParams,
  query: {},
  answer: Project,
  hasVersion: true,
  async run({ tx, projectId }) {
    const row = await findProject(tx, projectId)
    return { answer: projectView(row), version: row.version }
  },
})
