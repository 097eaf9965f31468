import Type from 'typebox'
import { recordLookup } from '../../core/control/audit/lookups.ts'
import { searchMessages } from '../../core/mail/messages/search.ts'
import { FoundMessage, messageFilter } from '../../core/mail/messages/wire.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { timeRangeOf, timeRangeQuery } from '../../core/shared/time-range.ts'
import { UnreachableCells } from '../../core/shared/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const id = 'messages.search'
const { recipient, status } = messageFilter

export const searchMessagesQuery = adminQuery({
  id,
  path: '/admin/messages',
  summary: 'Search the messages of all projects',
  description:
    'Messages of all projects, newest first. At least one of `recipient` and `sender` is required. Each request is recorded in `audit.lookups`.',
  params: NoParams,
  query: {
    ...PageQuery,
    recipient,
    sender: Type.Optional(
      Type.String({
        maxLength: 320,
        description: "The sender's full address, or a domain name.",
        examples: ['acme.example'],
      }),
    ),
    status,
    ...timeRangeQuery('Messages accepted'),
  },
  answer: Type.Object(
    { ...searchOf(FoundMessage).properties, unreachable_cells: UnreachableCells },
    { additionalProperties: false },
  ),
  // HEAD would record a lookup too.
  hasHead: false,
  async run({ db, cells, actorId, requestId, query }) {
    if (query.recipient === undefined && query.sender === undefined)
      throw new PosternError('invalid_parameter', 'Set "recipient" or "sender", or both.')
    const answer = await searchMessages({ db, cells }, { ...query, ...timeRangeOf(query) })
    const projectIds = answer.data.map(({ project_id }) => project_id)
    await recordLookup(db, { actorId, operation: id, question: questionOf(query), projectIds, requestId })
    return { answer }
  },
})

const questionOf = (query: Record<string, unknown>): string =>
  ['recipient', 'sender', 'status', 'from', 'to']
    .flatMap((name) => (query[name] === undefined ? [] : [`${name} ${query[name]}`]))
    .join(', ')
