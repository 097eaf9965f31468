import { lockDiscard, stopDiscard } from '../../core/control/discards/discards.ts'
import { Discard } from '../../core/control/discards/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { type Discarded, discardedBy } from '../../core/mail/dispatch/discards.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { resultOf } from './result.ts'

export const stopDiscardOperation = adminOperation({
  id: 'discards.stop',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/discards/:id/stop',
  summary: 'Stop a discard',
  description:
    'Stops a running discard. A batch of at most 1,000 recipients that a worker is about to discard is completed. A stopped discard can be resumed. Stopping it again changes nothing.',
  params: ProjectItemParams,
  body: {},
  refusals: ['already_ended'],
  example: { reason: 'The customer needs part of the mail after all' },
  answer: Discard,
  hasVersion: false,
  preload: (mail, { project_id, id }): Promise<Discarded | undefined> => discardedBy(mail, project_id, [id]),
  preloadFor: 'detail',
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockDiscard(tx, project_id, id)
  },
  run: async ({ tx, target: before, preloaded: discarded }) =>
    resultOf(
      before,
      await stopDiscard(tx, before),
      discarded,
      'No further recipients are discarded. A batch of at most 1,000 that has begun is completed.',
    ),
})
