import { apiKeyConfig, apiKeyView, createApiKey } from '../../core/control/api-keys/api-keys.ts'
import {
  ApiKeyWithSecret,
  apiKeyExamples,
  NewApiKeyFields,
  newApiKeyDefaults,
} from '../../core/control/api-keys/wire.ts'
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
    'Creates a credential for an application. The secret is returned only in this response; the service stores its SHA-256 hash and the readable `prefix`. Only `name` is required. By default, `mode` is `live`, `scopes` contains only `messages:send`, `domain_id` and `expires_at` are null, `allowed_ips` is empty and `is_active` is true. `mode` cannot be changed later. No scope grants access to members or API keys. Returns `limit_exceeded` if `max_api_keys` (see `usage.show`) would be exceeded.',
  params: NoParams,
  body: NewApiKeyFields,
  refusals: ['limit_exceeded'],
  example: apiKeyExamples.create,
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  async run({ tx, project, caller, deps, body }) {
    const { mode, ...wanted } = { ...newApiKeyDefaults, ...body }
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
