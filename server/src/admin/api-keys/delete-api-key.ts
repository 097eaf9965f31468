import { apiKeyConfig, deleteApiKey, lockApiKey } from '../../core/control/api-keys/api-keys.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { useWarnings } from './key-consequences.ts'

export const deleteApiKeyOperation = adminOperation({
  id: 'api-keys.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/api-keys/:id',
  summary: 'Remove an API key',
  description:
    'Deletes an API key for good: its secret opens nothing from the commit on. Mail that was accepted with it is still sent.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The program is not used any more' },
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockApiKey(tx, project_id, id)
  },
  async run({ tx, target: before }) {
    await deleteApiKey(tx, before)
    return {
      audit: {
        projectId: before.project_id,
        change: { resource: 'api_key', id: before.id, before: apiKeyConfig(before), after: null },
      },
      effects: ['Its secret opens nothing any more, and cannot be brought back.'],
      warnings: before.is_active ? useWarnings(before, 'whatever uses it is refused then.') : [],
      answer: null,
      version: null,
    }
  },
})
