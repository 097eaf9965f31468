import Type from 'typebox'
import { apiKeyConfig, apiKeyView, createApiKey } from '../../core/api-keys/api-keys.ts'
import { ApiKeyFields, ApiKeyWithSecret, Mode } from '../../core/api-keys/wire.ts'
import { lockProject } from '../../core/projects/projects.ts'
import { adminOperation } from '../operation.ts'
import { ProjectParams } from '../parameters.ts'
import { keyWarnings, newKeyEffects } from './key-consequences.ts'

export const createApiKeyOperation = adminOperation({
  id: 'api-keys.create',
  kind: 'create',
  path: '/admin/projects/:project_id/api-keys',
  summary: 'Create an API key',
  description:
    'Makes a credential for programs of the project. The answer holds the secret, this once only: nothing but its SHA-256 and the readable `prefix` is kept. The complete configuration is given, and `mode`, which never changes; only `is_active` may be left out, and is then true. No key opens the administrative interface, and there is no scope for members or for keys.',
  params: ProjectParams,
  body: { mode: Mode, ...ApiKeyFields, is_active: Type.Optional(ApiKeyFields.is_active) },
  isCompleteConfiguration: true,
  example: {
    mode: 'live',
    name: 'Web shop',
    scopes: ['messages:send', 'messages:read'],
    domain_id: null,
    allowed_ips: ['192.0.2.0/24', '2001:db8::/32'],
    expires_at: null,
  },
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
