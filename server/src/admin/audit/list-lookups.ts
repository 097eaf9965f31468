import Type from 'typebox'
import { listLookups, lookupView } from '../../core/control/audit/lookups.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { Timestamp } from '../../core/shared/wire.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const Lookup = Type.Object(
  {
    id: Type.Integer(),
    actor_id: Type.Integer(),
    operation: Type.String({ examples: ['trace.find'] }),
    question: Type.String({
      description: 'What was looked up, without signed references, shortened to 500 characters.',
    }),
    project_ids: Type.Array(Type.Integer(), {
      description: 'The projects in which mail was found, up to 50.',
    }),
    request_id: Type.String(),
    created_at: Timestamp,
  },
  { title: 'Lookup', additionalProperties: false },
)

export const listLookupsQuery = adminQuery({
  id: 'audit.lookups',
  path: '/admin/audit/lookups',
  summary: 'List lookups of mail',
  description:
    'Returns who searched the mail of all projects (`trace.find`, `messages.search`) or took evidence (`evidence.create`, `evidence.download`), newest first. One row per request; each page of a search is a request. Lookups are kept for 90 days and are not part of the chains.',
  params: NoParams,
  query: {
    ...PageQuery,
    actor: Type.Optional({ ...Id, description: 'Only lookups by this user.' }),
  },
  answer: listOf(Lookup),
  async run({ db, query }) {
    const fetch = (range: { limit: number; beforeId: number }) =>
      db.read((tx) => listLookups(tx, { actorId: query.actor, ...range }))
    return { answer: await newestFirst(query, fetch, lookupView) }
  },
})
