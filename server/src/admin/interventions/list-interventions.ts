import Type from 'typebox'
import { interventionView, listInterventions } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listInterventionsQuery = adminQuery({
  id: 'interventions.list',
  path: '/admin/projects/:project_id/interventions',
  summary: "List a project's interventions",
  description: 'Interventions, newest first: those in force and those that have ended.',
  params: ProjectParams,
  query: {
    ...PageQuery,
    in_force: Type.Optional(Type.Boolean({ description: 'Only interventions that have not ended.' })),
  },
  answer: listOf(Intervention),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const inForce = query.in_force === true
      const fetch = (range: { limit: number; beforeId: number }) =>
        listInterventions(tx, id, { ...range, inForce })
      return { answer: await newestFirst(query, fetch, interventionView) }
    }),
})
