import { discardView, findDiscard } from '../../core/control/discards/discards.ts'
import { Discard } from '../../core/control/discards/wire.ts'
import { discardedBy } from '../../core/mail/dispatch/discards.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showDiscard = adminQuery({
  id: 'discards.show',
  path: '/admin/projects/:project_id/queue/discards/:id',
  summary: 'Show a discard',
  description: 'One discard of queued mail, with its progress.',
  params: ProjectItemParams,
  query: {},
  answer: Discard,
  async run({ db, mailDbFor, params: { project_id, id } }) {
    const row = await db.read((tx) => findDiscard(tx, project_id, id))
    const discarded = await mailDbFor(project_id).read((mail) => discardedBy(mail, project_id, [id]))
    return { answer: discardView(row, discarded(id)) }
  },
})
