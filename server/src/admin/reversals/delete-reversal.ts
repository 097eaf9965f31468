import { lockProject } from '../../core/control/projects/projects.ts'
import { deleteReversal, findReversal } from '../../core/control/reversals/reversals.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteReversalOperation = adminOperation({
  id: 'reversals.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/reversals/:id',
  summary: 'Make a temporary override permanent',
  description: 'Deletes the reversal: the field keeps its current value. The project does not change.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'The customer has upgraded' },
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return findReversal(tx, project_id, id)
  },
  async run({ tx, target: row }) {
    const change = await deleteReversal(tx, row)
    return {
      audit: { projectId: row.project_id, change },
      effects: [`The field ${row.field} keeps its current value.`],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
