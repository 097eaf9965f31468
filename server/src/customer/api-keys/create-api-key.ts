import { apiKeyConfig, apiKeyView, createApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKeyWithSecret, apiKeyExamples, NewApiKeyFields } from '../../core/control/api-keys/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { userOf } from '../caller.ts'
import { requireProjectCap } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createApiKeyOperation = customerOperation({
  id: 'api-keys.create',
  kind: 'create',
  path: '/projects/:project_id/api-keys',
  summary: 'Create an API key',
  description:
    'Makes a credential for programs of the project. The answer holds the secret, this once only: nothing but its SHA-256 and the readable `prefix` is kept. The complete configuration is given, and `mode`, which never changes; only `is_active` may be left out, and is then true. There is no scope for members or for keys. Refused with `limit_exceeded` beyond `max_api_keys` (`usage.show`).',
  params: NoParams,
  body: NewApiKeyFields,
  isCompleteConfiguration: true,
  refusals: ['limit_exceeded'],
  example: apiKeyExamples.create,
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  async run({ tx, project, caller, deps, body: { mode, ...config } }) {
    const wanted = { ...config, is_active: config.is_active ?? true }
    const { row, secret } = await createApiKey(tx, project.id, mode, wanted, {
      type: 'user',
      id: userOf(caller).id,
    })
    await requireProjectCap(tx, deps.caps, 'max_api_keys', project.id)
    return {
      answer: { resource: apiKeyView(row), secret },
      activity: { resource: 'api_key', id: row.id, before: null, after: apiKeyConfig(row) },
      version: row.version,
      location: `/v1/projects/${project.id}/api-keys/${row.id}`,
    }
  },
})
