import { deleteProject, hasMailWaiting } from '../../core/control/projects/customers.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteProjectOperation = customerOperation({
  id: 'projects.delete',
  kind: 'delete',
  path: '/projects/:project_id',
  summary: 'Delete a project',
  description:
    'Deletes the project and its memberships permanently. Returns `in_use` while the project has domains, endpoints, routes or API keys, while one of its identities is still registered with a provider, or while mail is queued; the message lists what remains.',
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
