import { findReversal, reversalView } from '../../core/control/reversals/reversals.ts'
import { Reversal } from '../../core/control/reversals/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showReversal = adminQuery({
  id: 'reversals.show',
  path: '/admin/projects/:project_id/reversals/:id',
  summary: 'Show a pending reversal',
  description: 'One temporary override of a project, with the value that is restored when it expires.',
  params: ProjectItemParams,
  query: {},
  answer: Reversal,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findReversal(tx, params.project_id, params.id))
    return { answer: reversalView(row), version: row.version }
  },
})
