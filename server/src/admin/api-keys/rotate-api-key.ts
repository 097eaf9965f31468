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
  summary: 'Rotate the secret of an API key',
  description:
    'Makes a new secret of the same mode and tells it this once. The previous one opens nothing from the commit on. The configuration stays.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The secret was found in a public repository' },
  answer: ApiKeyWithSecret,
  revealsSecret: true,
  // Locked: two rotations at once give two audit rows and one living secret.
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
        'The present secret opens nothing any more.',
        ...(after.is_active ? [] : ['The key stays switched off, so the new secret opens nothing either.']),
      ],
      warnings: useWarnings(before, 'programs are refused until they know the new secret.'),
      answer: { resource: apiKeyView(after), secret },
      version: after.version,
      location: `/v1/admin/projects/${after.project_id}/api-keys/${after.id}`,
    }
  },
})
