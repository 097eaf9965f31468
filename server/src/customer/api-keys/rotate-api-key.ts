import { apiKeyConfig, apiKeyView, lockApiKey, rotateApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKeyWithSecret } from '../../core/control/api-keys/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const rotateApiKeyOperation = customerOperation({
  id: 'api-keys.rotate',
  kind: 'rotate',
  path: '/projects/:project_id/api-keys/:id/rotate',
  summary: "Rotate an API key's secret",
  description:
    'Generates a new secret with the same mode and returns it only in this response. The previous secret stops working immediately. The configuration does not change.',
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
