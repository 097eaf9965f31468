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
  summary: "Hold a project's mail",
  description:
    "Stops sending the project's mail, both queued mail and mail accepted from now on, until the queue is released. New mail is still accepted. Mail that has been held for 7 days fails. Mail that is being sent cannot be stopped. The hold is an intervention without expiry. If there already is one, nothing changes.",
  params: ProjectParams,
  body: {},
  example: { reason: 'Customer asked us to stop a mailing' },
  answer: ProjectQueue,
  hasVersion: false,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target, preloaded, actorId, reason }) {
    const [change, ...related] = await holdQueue(tx, target, { actorId, reason })
    const queue = await queueView(tx, target.id, preloaded)
    const obstacles = otherObstacles(target)
    return {
      audit: change ? { projectId: target.id, change, related } : unchanged,
      effects: change
        ? [
            `Queued messages: ${countText(queue.waiting)}. They are held until the queue is released, and fail after 7 days.`,
            ...(obstacles.length === 0 ? ['New mail is still accepted, but held.'] : []),
          ]
        : [],
      warnings: [
        ...obstacles,
        ...(queue.leaving > 0
          ? [`Messages being sent now that cannot be stopped: ${countText(queue.leaving)}.`]
          : []),
      ],
      answer: queue,
      version: null,
    }
  },
})
