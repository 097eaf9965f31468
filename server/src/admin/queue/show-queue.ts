import { ProjectQueue, showQueue } from '../../core/control/holds/project-holds.ts'
import { requireProject } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showQueueQuery = adminQuery({
  id: 'queue.show',
  path: '/admin/projects/:project_id/queue',
  summary: "Show a project's queue",
  description: 'The number of messages in the queue, by state, and whether the queue is held.',
  params: ProjectParams,
  query: {},
  answer: ProjectQueue,
  run: ({ mailDbFor, params: { project_id } }) =>
    mailDbFor(project_id).read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await showQueue(tx, project_id) }
    }),
})
