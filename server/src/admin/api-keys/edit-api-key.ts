import { apiKeyConfig, apiKeyView, editApiKey, lockApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey, ApiKeyFields, apiKeyExamples } from '../../core/control/api-keys/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { changedKeyEffects, keyWarnings } from './key-consequences.ts'

export const editApiKeyOperation = adminOperation({
  id: 'api-keys.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/api-keys/:id',
  summary: 'Edit an API key',
  description: `Replaces the complete editable configuration. The secret and the mode do not change.

- The configuration must be complete, not partial: \`name\`, \`scopes\`, \`domain_id\`, \`allowed_ips\`, \`expires_at\` and \`is_active\` are required; send null for those that do not apply. If one is missing, the request is rejected with \`incomplete_configuration\`.
- A key bound to an unverified domain cannot send. Editing a domain registers a replacement identity and resets its verification, so the key cannot send until the domain is verified again. The key stays bound to the domain.
- The operation never touches address routes. A body with \`route_replacements\` or \`preserve_local_parts\` is rejected with \`validation_failed\`: edit routes individually, or when you rename their domain.`,
  params: ProjectItemParams,
  body: ApiKeyFields,
  isCompleteConfiguration: true,
  example: apiKeyExamples.edit,
  answer: ApiKey,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockApiKey(tx, project_id, id)
  },
  async run({ tx, target: before, body }) {
    const after = await editApiKey(tx, before, body)
    const isUnchanged = after === before
    return {
      audit: isUnchanged
        ? unchanged
        : {
            projectId: after.project_id,
            change: {
              resource: 'api_key',
              id: after.id,
              before: apiKeyConfig(before),
              after: apiKeyConfig(after),
            },
          },
      effects: changedKeyEffects(before, after),
      warnings: isUnchanged ? [] : () => keyWarnings(tx, after),
      answer: apiKeyView(after),
      version: after.version,
    }
  },
})
