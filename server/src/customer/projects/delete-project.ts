import { deleteProject, hasMailWaiting } from '../../core/control/projects/customers.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteProjectOperation = customerOperation({
  id: 'projects.delete',
  kind: 'delete',
  path: '/projects/:project_id',
  summary: 'Give a project up',
  description:
    'Deletes the project and its memberships for good. Refused with `in_use`, naming what is still there, while it has domains, endpoints, routes or API keys, while a provider still has an identity of it, or while mail waits.',
  params: NoParams,
  body: {},
  refusals: ['in_use', 'project_locked'],
  example: {},
  preload: (mail, { projectId }) => hasMailWaiting(mail, projectId),
  async run({ tx, project, preloaded }) {
    await deleteProject(tx, project, { hasMail: preloaded })
    const activity = { resource: 'project', id: project.id, before: { name: project.name }, after: null }
    return { answer: null, activity, version: null }
  },
})
