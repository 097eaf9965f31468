import { apiKeyConfig, apiKeyView, editApiKey, lockApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey, ApiKeyFields, apiKeyExamples } from '../../core/control/api-keys/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editApiKeyOperation = customerOperation({
  id: 'api-keys.edit',
  kind: 'edit',
  path: '/projects/:project_id/api-keys/:id',
  summary: 'Edit an API key',
  description:
    'Replaces the complete configuration; the secret and the mode do not change. `name`, `scopes`, `domain_id`, `allowed_ips`, `expires_at` and `is_active` are all required; send null for those that do not apply. If one is missing, the request is rejected with `incomplete_configuration`. A key bound to an unverified domain cannot send.',
  params: ItemParams,
  body: ApiKeyFields,
  isCompleteConfiguration: true,
  example: apiKeyExamples.edit,
  answer: ApiKey,
  target: ({ tx, project, params }) => lockApiKey(tx, project.id, params.id),
  async run({ tx, target: before, body }) {
    const row = await editApiKey(tx, before, body)
    const activity = changeOf('api_key', before, row, apiKeyConfig)
    return { answer: apiKeyView(row), activity, version: row.version }
  },
})
