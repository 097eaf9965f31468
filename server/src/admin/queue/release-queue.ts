import Type from 'typebox'
import { countQueue, ProjectQueue, queueView, releaseQueue } from '../../core/control/holds/project-holds.ts'
import { countReady } from '../../core/control/interventions/gradual-release.ts'
import { lockProject, projectCounts } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { gradualEffect, gradualWarnings, otherObstacles, paceSentences } from './consequences.ts'

export const releaseQueueOperation = adminOperation({
  id: 'queue.release',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/release',
  summary: "Release a project's mail",
  description:
    'Sends the held mail of a project: ends every hold, including those that would expire. If the project is locked, or its subscription is canceled or paused, the mail is still held. If the queue is not held, nothing changes. With `per_minute`, the release is gradual: it also starts a pace, which ends when all mail that is ready now has been attempted or removed from the queue. This also works if the queue is not held. If no mail is ready, no pace starts.',
  params: ProjectParams,
  body: {
    per_minute: Type.Optional(
      Type.Integer({
        minimum: 1,
        // A pace has at most 1,000,000 recipients per hour.
        maximum: 16_666,
        description: 'Maximum number of recipients handed over per minute.',
      }),
    ),
  },
  refusals: ['limit_exceeded'],
  example: { per_minute: 100, reason: 'The customer has corrected the mailing' },
  answer: ProjectQueue,
  hasVersion: false,
  preload: async (mail, { project_id }, { per_minute }) => ({
    counts: await countQueue(mail, project_id),
    ready: per_minute === undefined ? 0 : await countReady(mail, project_id),
  }),
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, actorId, target, body, preloaded: { counts, ready }, reason }) {
    const perMinute = ready > 0 ? body.per_minute : undefined
    const gradually = perMinute === undefined ? undefined : { perMinute, decision: { actorId, reason } }
    const [change, ...related] = await releaseQueue(tx, target, gradually)
    const queue = await queueView(tx, target.id, counts)
    const obstacles = otherObstacles(target)
    const outcome = obstacles.length === 0 ? 'will be sent' : 'are still held'
    return {
      audit: change ? { projectId: target.id, change, related } : unchanged,
      effects: change
        ? [
            `Messages that ${outcome}: ${countText(queue.waiting)}.`,
            ...(perMinute === undefined ? [] : [gradualEffect(perMinute, ready)]),
          ]
        : [],
      warnings: async () => {
        const { pace_per_hour } = await projectCounts(tx, target.id)
        return [
          ...obstacles,
          ...(perMinute !== undefined && pace_per_hour === perMinute * 60
            ? []
            : paceSentences(pace_per_hour)),
          ...(perMinute === undefined ? [] : gradualWarnings(perMinute, ready)),
        ]
      },
      answer: queue,
      version: null,
    }
  },
})
