import { countQueue, holdQueue, ProjectQueue, queueView } from '../../core/control/holds/project-holds.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { otherObstacles } from './consequences.ts'

export const holdQueueOperation = adminOperation({
  id: 'queue.hold',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/hold',
  summary: 'Hold the mail of a project',
  description:
    'Keeps what waits, and what is accepted from now on, from being handed over, until it is released; mail is accepted as before. What is held for 7 days fails. Mail that is leaving at this moment cannot be stopped. Where it is held already, nothing changes.',
  params: ProjectParams,
  body: {},
  example: { reason: 'Customer asked us to stop a mailing' },
  answer: ProjectQueue,
  hasVersion: false,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target, preloaded }) {
    const hasChanged = await holdQueue(tx, target.id)
    const queue = await queueView(tx, target.id, preloaded)
    const obstacles = otherObstacles(target)
    return {
      audit: hasChanged
        ? {
            projectId: target.id,
            change: {
              resource: 'queue',
              id: target.id,
              before: { is_held: false },
              after: { is_held: true },
            },
          }
        : unchanged,
      effects: hasChanged
        ? [
            `Mails that wait: ${countText(queue.waiting)}. They are held until the queue is released; one that is held for 7 days fails.`,
            ...(obstacles.length === 0 ? ['New mail is accepted as before, and held.'] : []),
          ]
        : [],
      warnings: [
        ...obstacles,
        ...(queue.leaving > 0
          ? [`Mails that are leaving just now and cannot be stopped: ${countText(queue.leaving)}.`]
          : []),
      ],
      answer: queue,
      version: null,
    }
  },
})
