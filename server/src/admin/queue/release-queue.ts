import { countQueue, ProjectQueue, queueView, releaseQueue } from '../../core/control/holds/project-holds.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { otherObstacles } from './consequences.ts'

export const releaseQueueOperation = adminOperation({
  id: 'queue.release',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/release',
  summary: 'Release the mail of a project',
  description:
    'Lets the mail of a project go on that was held. A lock, or a subscription that is not in force, holds it all the same. Where it is not held, nothing changes.',
  params: ProjectParams,
  body: {},
  example: { reason: 'The customer has corrected the mailing' },
  answer: ProjectQueue,
  hasVersion: false,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target, preloaded }) {
    const hasChanged = await releaseQueue(tx, target.id)
    const queue = await queueView(tx, target.id, preloaded)
    const obstacles = otherObstacles(target)
    const become = obstacles.length === 0 ? 'go on' : 'still wait'
    return {
      audit: hasChanged
        ? {
            projectId: target.id,
            change: {
              resource: 'queue',
              id: target.id,
              before: { is_held: true },
              after: { is_held: false },
            },
          }
        : unchanged,
      effects: hasChanged ? [`Mails that ${become}: ${countText(queue.waiting)}.`] : [],
      warnings: obstacles,
      answer: queue,
      version: null,
    }
  },
})
