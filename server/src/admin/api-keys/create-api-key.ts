import { apiKeyConfig, apiKeyView, createApiKey } from '../../core/control/api-keys/api-keys.ts'
import {
  ApiKeyWithSecret,
  apiKeyExamples,
  NewApiKeyFields,
  newApiKeyDefaults,
} from '../../core/control/api-keys/wire.ts'
import { projectBeyond } from '../../core/control/caps/caps.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { keyWarnings, newKeyEffects } from './key-consequences.ts'

export const createApiKeyOperation = adminOperation({
  id: 'api-keys.create',
  kind: 'create',
  path: '/admin/projects/:project_id/api-keys',
  summary: 'Create an API key',
  description:
    'Creates a credential for an application. The secret is returned only in this response; the service stores its SHA-256 hash and the readable `prefix`. Only `name` is required. By default, `mode` is `live`, `scopes` contains only `messages:send`, `domain_id` and `expires_at` are null, `allowed_ips` is empty and `is_active` is true. `mode` cannot be changed later. API keys cannot access the administrative API, and no scope grants access to members or API keys. A `reason` is required to exceed `max_api_keys`, and the audit entry records the exception.',
  params: ProjectParams,
  body: NewApiKeyFields,
  refusals: ['limit_exceeded'],
  example: apiKeyExamples.create,
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, caps, actorId, target: project, body }) {
    const { mode, ...wanted } = { ...newApiKeyDefaults, ...body }
    const { row, secret } = await createApiKey(tx, project.id, mode, wanted, {
      type: 'administrator',
      id: actorId,
    })
    const limitException = await projectBeyond(tx, caps, 'max_api_keys', project.id)
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'api_key', id: row.id, before: null, after: apiKeyConfig(row) },
        limitException,
      },
      effects: () => newKeyEffects(tx, row),
      warnings: async () => [...limitWarnings(limitException), ...(await keyWarnings(tx, row))],
      answer: { resource: apiKeyView(row), secret },
      version: row.version,
      location: `/v1/admin/projects/${project.id}/api-keys/${row.id}`,
    }
  },
})
