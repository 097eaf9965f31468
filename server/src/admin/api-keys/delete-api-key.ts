import { apiKeyConfig, deleteApiKey, lockApiKey } from '../../core/control/api-keys/api-keys.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { useWarnings } from './key-consequences.ts'

export const deleteApiKeyOperation = adminOperation({
  id: 'api-keys.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/api-keys/:id',
  summary: 'Delete an API key',
  description:
    'Deletes an API key permanently. Its secret is rejected immediately. Mail already accepted with the key is still sent.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The application was shut down' },
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
      effects: ['Its secret is rejected immediately and cannot be restored.'],
      warnings: before.is_active
        ? useWarnings(before, 'applications that still use it will be rejected.')
        : [],
      answer: null,
      version: null,
    }
  },
})
