import { apiKeyView, listApiKeys } from '../../core/control/api-keys/api-keys.ts'
import { ApiKey } from '../../core/control/api-keys/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listApiKeysQuery = adminQuery({
  id: 'api-keys.list',
  path: '/admin/projects/:project_id/api-keys',
  summary: "List a project's API keys",
  description: 'API keys, newest first, without their secrets.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(ApiKey),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const page = pageOf(query)
      const fetch = (limit: number) => listApiKeys(tx, id, { limit, beforeId: page.lastId })
      return { answer: await listed(page, fetch, apiKeyView) }
    }),
})
