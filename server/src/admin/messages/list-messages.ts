import { requireProject } from '../../core/control/projects/projects.ts'
import { listMessages } from '../../core/mail/messages/messages.ts'
import { Message, messageFilter } from '../../core/mail/messages/wire.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { timeRangeQuery } from '../../core/shared/time-range.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listMessagesQuery = adminQuery({
  id: 'messages.list',
  path: '/admin/projects/:project_id/messages',
  summary: "List a project's messages",
  description: 'Messages, newest first, with their recipients and the status of each.',
  params: ProjectParams,
  query: { ...PageQuery, ...messageFilter, ...timeRangeQuery('Messages accepted') },
  answer: searchOf(Message),
  run: ({ mailDbFor, params: { project_id }, query }) =>
    mailDbFor(project_id).read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await listMessages(tx, project_id, query) }
    }),
})
