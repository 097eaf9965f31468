import Type from 'typebox'
import { searchEverything } from '../../core/control/search/search.ts'
import { SearchQuery, SearchResult } from '../../core/control/search/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const findAnythingQuery = adminQuery({
  id: 'search.find',
  path: '/admin/search',
  summary: 'Find a project, domain, address or user',
  description:
    'Returns up to 20 projects, domains, routes and users whose name or address contains the text: exact matches first, ' +
    'then prefix matches, then all others. Equally good matches alternate between types. The search is intended for ' +
    'autocompletion: if the text is very common, some matches may be missing. The list operations return all matches.',
  params: NoParams,
  query: SearchQuery,
  answer: Type.Object({ data: Type.Array(SearchResult) }, { additionalProperties: false }),
  run: async ({ db, query }) => ({
    answer: { data: await db.read((tx) => searchEverything(tx, query.q.trim())) },
  }),
})
