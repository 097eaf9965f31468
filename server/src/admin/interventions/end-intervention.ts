import { countQueue } from '../../core/control/holds/project-holds.ts'
import { endIntervention, findIntervention } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { resultOf } from './consequences.ts'

export const endInterventionOperation = adminOperation({
  id: 'interventions.end',
  kind: 'command',
  path: '/admin/projects/:project_id/interventions/:id/end',
  summary: 'End an intervention',
  description:
    'Ends an intervention that is in force. Other interventions of the project stay in force. An intervention that has ended cannot be ended again.',
  params: ProjectItemParams,
  body: {},
  refusals: ['already_ended'],
  example: { reason: 'The customer has removed the list' },
  answer: Intervention,
  preload: (mail, { project_id }) => countQueue(mail, project_id),
  preloadFor: 'preview',
  async target(tx, { project_id, id }) {
    const project = await lockProject(tx, project_id)
    return { project, row: await findIntervention(tx, project_id, id) }
  },
  async run({ tx, target: { project: before, row: current }, preloaded: mail }) {
    return resultOf(tx, before, await endIntervention(tx, before, current, 'administrator'), mail)
  },
})
