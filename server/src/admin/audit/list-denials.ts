import Type from 'typebox'
import { denialView, listDenials } from '../../core/control/audit/denials.ts'
import { listed, listOf, PageQuery, pageOf } from '../../core/shared/pages.ts'
import { nullable, Timestamp } from '../../core/shared/wire.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const Denial = Type.Object(
  {
    id: Type.Integer(),
    minute: Timestamp,
    actor_id: Type.Integer(),
    operation: Type.String(),
    error: Type.String(),
    project_id: nullable(Type.Integer({ description: 'The project of the last denied request.' })),
    count: Type.Integer({ description: 'The number of denied requests in that minute.' }),
    last_request_id: Type.String(),
  },
  { title: 'Denial', additionalProperties: false },
)

export const listDenialsQuery = adminQuery({
  id: 'denials.list',
  path: '/admin/denials',
  summary: 'List denials',
  description:
    'Returns denied requests from signed-in users, counted per user, operation, error and minute, newest first. Denials are kept for 90 days.',
  params: NoParams,
  query: {
    ...PageQuery,
    actor: Type.Optional({ ...Id, description: 'The id of the user whose requests were denied.' }),
  },
  answer: listOf(Denial),
  async run({ db, query }) {
    const page = pageOf(query)
    const fetch = (limit: number) =>
      db.read((tx) => listDenials(tx, { actorId: query.actor, limit, beforeId: page.lastId }))
    return { answer: await listed(page, fetch, denialView) }
  },
})
