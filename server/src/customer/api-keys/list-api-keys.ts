import { apiKeyView, listApiKeys } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey } from '../../core/control/api-keys/wire.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listApiKeysQuery = customerQuery({
  id: 'api-keys.list',
  path: '/projects/:project_id/api-keys',
  summary: 'List API keys',
  description: 'Returns the API keys, newest first, without their secrets.',
  params: NoParams,
  query: PageQuery,
  answer: listOf(ApiKey),
  async run({ tx, projectId, query }) {
    return { answer: await newestFirst(query, (range) => listApiKeys(tx, projectId, range), apiKeyView) }
  },
})
