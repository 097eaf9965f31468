import { findIntervention, interventionView } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showIntervention = adminQuery({
  id: 'interventions.show',
  path: '/admin/projects/:project_id/interventions/:id',
  summary: 'Show an intervention',
  description: 'One intervention of a project, in force or ended.',
  params: ProjectItemParams,
  query: {},
  answer: Intervention,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findIntervention(tx, params.project_id, params.id))
    return { answer: interventionView(row), version: row.version }
  },
})
