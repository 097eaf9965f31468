import { apiKeyConfig, deleteApiKey, lockApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteApiKeyOperation = customerOperation({
  id: 'api-keys.delete',
  kind: 'delete',
  path: '/projects/:project_id/api-keys/:id',
  summary: 'Delete an API key',
  description:
    'Deletes an API key permanently. Its secret stops working immediately. Messages accepted with the key are still sent.',
  params: ItemParams,
  body: {},
  example: {},
  target: ({ tx, project, params }) => lockApiKey(tx, project.id, params.id),
  async run({ tx, target: before }) {
    await deleteApiKey(tx, before)
    const activity = { resource: 'api_key', id: before.id, before: apiKeyConfig(before), after: null }
    return { answer: null, activity, version: null }
  },
})
