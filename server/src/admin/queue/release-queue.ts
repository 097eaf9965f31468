import { countQueue, ProjectQueue, queueView, releaseQueue } from '../../core/control/holds/project-holds.ts'
import { lockProject, projectCounts } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { otherObstacles, paceSentences } from './consequences.ts'

export const releaseQueueOperation = adminOperation({
  id: 'queue.release',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/release',
  summary: "Release a project's mail",
  description:
    'Sends the held mail of a project: ends every hold, including those that would expire. If the project is locked, or its subscription is canceled or paused, the mail is still held. If the queue is not held, nothing changes.',
  params: ProjectParams,
  body: {},
  example: { reason: 'The customer has corrected the mailing' },
  answer: ProjectQueue,
  hasVersion: false,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target, preloaded }) {
    const [change, ...related] = await releaseQueue(tx, target)
    const queue = await queueView(tx, target.id, preloaded)
    const obstacles = otherObstacles(target)
    const outcome = obstacles.length === 0 ? 'will be sent' : 'are still held'
    return {
      audit: change ? { projectId: target.id, change, related } : unchanged,
      effects: change ? [`Messages that ${outcome}: ${countText(queue.waiting)}.`] : [],
      warnings: async () => [
        ...obstacles,
        ...paceSentences((await projectCounts(tx, target.id)).pace_per_hour),
      ],
      answer: queue,
      version: null,
    }
  },
})
