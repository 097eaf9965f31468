import { customerProjectView, renameProject } from '../../core/control/projects/customers.ts'
import { CustomerProject, ProjectFields } from '../../core/control/projects/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { roleOf } from '../caller.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editProjectOperation = customerOperation({
  id: 'projects.edit',
  kind: 'edit',
  path: '/projects/:project_id',
  summary: 'Rename a project',
  description: 'Changes the `name` of the project. Only an administrator can change its other fields.',
  params: NoParams,
  body: { name: ProjectFields.name },
  example: { name: 'Web shop' },
  answer: CustomerProject,
  async run({ tx, caller, project, body }) {
    const row = await renameProject(tx, project, body.name)
    const activity = changeOf('project', project, row, ({ name }) => ({ name }))
    return { answer: customerProjectView(row, roleOf(caller)), activity, version: row.version }
  },
})
