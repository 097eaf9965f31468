import { countQueue } from '../../core/control/holds/project-holds.ts'
import { editIntervention, findIntervention } from '../../core/control/interventions/interventions.ts'
import { Intervention, InterventionFields } from '../../core/control/interventions/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { resultOf } from './consequences.ts'

export const editInterventionOperation = adminOperation({
  id: 'interventions.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/interventions/:id',
  summary: 'Edit an intervention',
  description:
    'Replaces the pace, the public note and the expiry of an intervention that is in force. All three are required; send null for those that do not apply. An intervention that has ended cannot be changed.',
  params: ProjectItemParams,
  body: InterventionFields,
  isCompleteConfiguration: true,
  refusals: ['already_ended'],
  example: {
    pace_per_hour: 1000,
    public_note: null,
    expires_at: null,
    reason: 'The list was cleaned up',
  },
  answer: Intervention,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  preloadFor: 'preview',
  async target(tx, { project_id, id }) {
    const project = await lockProject(tx, project_id)
    const row = await findIntervention(tx, project_id, id)
    return { ...row, project }
  },
  async run({ tx, target: { project: before, ...current }, body, preloaded: mail }) {
    return resultOf(tx, before, await editIntervention(tx, before, current, body), mail)
  },
})
