import { apiKeyConfig, apiKeyView, lockApiKey, rotateApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKeyWithSecret } from '../../core/control/api-keys/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const rotateApiKeyOperation = customerOperation({
  id: 'api-keys.rotate',
  kind: 'rotate',
  path: '/projects/:project_id/api-keys/:id/rotate',
  summary: 'Rotate the secret of an API key',
  description:
    'Makes a new secret of the same mode and tells it this once. The previous one opens nothing from the commit on. The configuration stays.',
  params: ItemParams,
  body: {},
  example: {},
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  target: ({ tx, project, params }) => lockApiKey(tx, project.id, params.id),
  async run({ tx, project, target: before }) {
    const { row, secret } = await rotateApiKey(tx, before)
    return {
      answer: { resource: apiKeyView(row), secret },
      activity: changeOf('api_key', before, row, apiKeyConfig),
      version: row.version,
      location: `/v1/projects/${project.id}/api-keys/${row.id}`,
    }
  },
})
