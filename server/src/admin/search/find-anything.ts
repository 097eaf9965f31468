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
    'Up to 20 projects, domains, routes and users with this in their name or address, the best first: what is exactly ' +
    'this, what begins with it, what has it somewhere. Of equals, each kind has its turn. It is for somebody who types, ' +
    'and answers at once: what merely has in it what very much else has may be missing. The lists have everything.',
  params: NoParams,
  query: SearchQuery,
  answer: Type.Object({ data: Type.Array(SearchResult) }, { additionalProperties: false }),
  run: async ({ db, query }) => ({
    answer: { data: await db.read((tx) => searchEverything(tx, query.q.trim())) },
  }),
})
