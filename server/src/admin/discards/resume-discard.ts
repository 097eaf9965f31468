import { lockDiscard, resumeDiscard } from '../../core/control/discards/discards.ts'
import { Discard } from '../../core/control/discards/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { type Discarded, discardedBy } from '../../core/mail/dispatch/discards.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { resultOf } from './result.ts'

export const resumeDiscardOperation = adminOperation({
  id: 'discards.resume',
  kind: 'command',
  path: '/admin/projects/:project_id/queue/discards/:id/resume',
  summary: 'Resume a discard',
  description:
    'Resumes a stopped discard. It still matches only messages accepted before its start. Resuming a running discard changes nothing. Only one discard per project can run at a time.',
  params: ProjectItemParams,
  body: {},
  refusals: ['already_ended'],
  example: { reason: 'The customer has confirmed' },
  answer: Discard,
  hasVersion: false,
  preload: (mail, { project_id, id }): Promise<Discarded | undefined> => discardedBy(mail, project_id, [id]),
  preloadFor: 'detail',
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockDiscard(tx, project_id, id)
  },
  run: async ({ tx, target: before, preloaded: discarded }) =>
    resultOf(before, await resumeDiscard(tx, before), discarded, 'The discard continues.'),
})
