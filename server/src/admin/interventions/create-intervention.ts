import { countQueue } from '../../core/control/holds/project-holds.ts'
import { startIntervention } from '../../core/control/interventions/interventions.ts'
import { Intervention, NewInterventionFields } from '../../core/control/interventions/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { resultOf } from './consequences.ts'

export const createInterventionOperation = adminOperation({
  id: 'interventions.create',
  kind: 'create',
  path: '/admin/projects/:project_id/interventions',
  summary: 'Start an intervention',
  description:
    'Warns a project, or restricts its sending. `pace_per_hour` is required for a `pace` and not allowed for other kinds. With `expires_at`, the intervention ends by itself, at most 366 days from now. If several interventions are in force, the strictest applies; of several paces, the slowest. A project can have 20 in force. Mail that waits for 7 days fails.',
  params: ProjectParams,
  body: NewInterventionFields,
  refusals: ['limit_exceeded'],
  example: {
    kind: 'pace',
    pace_per_hour: 500,
    public_note: 'Many recipients of your last mailing do not exist. Please clean up your list.',
    expires_at: null,
    reason: 'Bounce rate of 12 % after an imported list',
  },
  answer: Intervention,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  preloadFor: 'preview',
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target: before, body, actorId, reason, preloaded: mail }) {
    const started = await startIntervention(tx, before, { ...body, actorId, reason })
    return {
      ...resultOf(tx, before, started, mail),
      location: `/v1/admin/projects/${before.id}/interventions/${started.row.id}`,
    }
  },
})
