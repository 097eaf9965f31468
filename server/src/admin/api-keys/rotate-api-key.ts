import { apiKeyConfig, apiKeyView, lockApiKey, rotateApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKeyWithSecret } from '../../core/control/api-keys/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { useWarnings } from './key-consequences.ts'

export const rotateApiKeyOperation = adminOperation({
  id: 'api-keys.rotate',
  kind: 'rotate',
  path: '/admin/projects/:project_id/api-keys/:id/rotate',
  summary: "Rotate an API key's secret",
  description:
    'Creates a new secret with the same mode and returns it only in this response. The previous secret is rejected immediately. The configuration does not change.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The secret was found in a public repository' },
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  // Locked: two concurrent rotations write two audit rows and leave one valid secret.
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockApiKey(tx, project_id, id)
  },
  async run({ tx, target: before }) {
    const { row: after, secret } = await rotateApiKey(tx, before)
    return {
      audit: {
        projectId: after.project_id,
        change: {
          resource: 'api_key',
          id: after.id,
          before: apiKeyConfig(before),
          after: apiKeyConfig(after),
        },
      },
      effects: [
        'The current secret is rejected immediately.',
        ...(after.is_active ? [] : ['The key is inactive, so the new secret is rejected too.']),
      ],
      warnings: useWarnings(before, 'applications are rejected until they use the new secret.'),
      answer: { resource: apiKeyView(after), secret },
      version: after.version,
      location: `/v1/admin/projects/${after.project_id}/api-keys/${after.id}`,
    }
  },
})
