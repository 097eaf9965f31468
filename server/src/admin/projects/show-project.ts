import { findProject, projectView } from '../../core/control/projects/projects.ts'
import { Project } from '../../core/control/projects/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showProject = adminQuery({
  id: 'projects.show',
  path: '/admin/projects/:project_id',
  summary: 'Show a project',
  description: "One project with its current plan. The `ETag` is the project's version.",
  params: ProjectParams,
  query: {},
  answer: Project,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findProject(tx, params.project_id))
    return { answer: projectView(row), version: row.version }
  },
})
