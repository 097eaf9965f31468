import { listMessages } from '../../core/mail/messages/messages.ts'
import { Message, messageFilter } from '../../core/mail/messages/wire.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { timeRangeQuery } from '../../core/shared/time-range.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listMessagesQuery = customerQuery({
  id: 'messages.list',
  path: '/projects/:project_id/messages',
  pathOfKey: '/messages',
  summary: 'List messages',
  description: 'Returns messages, newest first, each with its recipients and their status.',
  params: NoParams,
  query: { ...PageQuery, ...messageFilter, ...timeRangeQuery('Messages accepted') },
  runsIn: 'mail',
  answer: searchOf(Message),
  run: async ({ tx, projectId, domainId, query }) => ({
    answer: await listMessages(tx, projectId, query, domainId),
  }),
})
