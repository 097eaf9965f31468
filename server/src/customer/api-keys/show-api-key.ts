import { apiKeyView, findApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey } from '../../core/control/api-keys/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showApiKey = customerQuery({
  id: 'api-keys.show',
  path: '/projects/:project_id/api-keys/:id',
  summary: 'Show an API key',
  description: 'Returns one API key with its readable `prefix`. The secret is never shown.',
  params: ItemParams,
  query: {},
  answer: ApiKey,
  hasVersion: true,
  async run({ tx, projectId, params }) {
    const row = await findApiKey(tx, projectId, params.id)
    return { answer: apiKeyView(row), version: row.version }
  },
})
