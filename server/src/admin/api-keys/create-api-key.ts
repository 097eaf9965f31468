import { apiKeyConfig, apiKeyView, createApiKey } from '../../core/api-keys/api-keys.ts'
import { ApiKeyWithSecret, apiKeyExamples, NewApiKeyFields } from '../../core/api-keys/wire.ts'
import { lockProject } from '../../core/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { keyWarnings, newKeyEffects } from './key-consequences.ts'

export const createApiKeyOperation = adminOperation({
  id: 'api-keys.create',
  kind: 'create',
  path: '/admin/projects/:project_id/api-keys',
  summary: 'Create an API key',
  description:
    'Makes a credential for programs of the project. The answer holds the secret, this once only: nothing but its SHA-256 and the readable `prefix` is kept. The complete configuration is given, and `mode`, which never changes; only `is_active` may be left out, and is then true. No key opens the administrative interface, and there is no scope for members or for keys.',
  params: ProjectParams,
  body: NewApiKeyFields,
  isCompleteConfiguration: true,
  example: apiKeyExamples.create,
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target: project, body: { mode, ...config } }) {
    const wanted = { ...config, is_active: config.is_active ?? true }
    const { row, secret } = await createApiKey(tx, project.id, mode, wanted)
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'api_key', id: row.id, before: null, after: apiKeyConfig(row) },
      },
      effects: () => newKeyEffects(tx, row),
      warnings: () => keyWarnings(tx, row),
      answer: { resource: apiKeyView(row), secret },
      version: row.version,
      location: `/v1/admin/projects/${project.id}/api-keys/${row.id}`,
    }
  },
})
