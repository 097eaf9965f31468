import { apiKeyView, findApiKey } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey } from '../../core/control/api-keys/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showApiKey = adminQuery({
  id: 'api-keys.show',
  path: '/admin/projects/:project_id/api-keys/:id',
  summary: 'Show an API key',
  description:
    'One API key of a project. The response contains the `prefix` of the secret, never the secret itself.',
  params: ProjectItemParams,
  query: {},
  answer: ApiKey,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findApiKey(tx, params.project_id, params.id))
    return { answer: apiKeyView(row), version: row.version }
  },
})
