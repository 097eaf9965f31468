import { appeal, findNotice, noticeView } from '../../core/control/interventions/notices.ts'
import { AppealText, Notice } from '../../core/control/interventions/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const appealNoticeOperation = customerOperation({
  id: 'notices.appeal',
  kind: 'create',
  path: '/projects/:project_id/notices/:id/appeal',
  summary: 'Appeal against an intervention',
  description:
    'Sends a text to the administrators, who see it with the intervention. Nothing else changes: the intervention stays in force until it ends. A second appeal is rejected with `already_exists`, and an appeal against an intervention that has ended with `already_ended`. Also possible while the project is locked.',
  params: ItemParams,
  body: { text: AppealText },
  refusals: ['already_exists', 'already_ended'],
  example: { text: 'We have removed the imported list.\nPlease let us send again.' },
  answer: Notice,
  hasVersion: false,
  target: ({ tx, project, params }) => findNotice(tx, project.id, params.id),
  async run({ tx, project, caller, body, target }) {
    // No API key has the scope (scopes.ts).
    if (caller.kind === 'key') throw new Error('an API key cannot appeal')
    const row = await appeal(tx, project.id, target, { userId: caller.user.id, text: body.text })
    return {
      answer: noticeView(row),
      activity: { resource: 'notice', id: row.id, before: null, after: null },
      version: null,
      location: `/v1/projects/${project.id}/notices/${row.id}`,
    }
  },
})
