import { findProject } from '../../core/control/projects/projects.ts'
import { listReversals, reversalView } from '../../core/control/reversals/reversals.ts'
import { Reversal } from '../../core/control/reversals/wire.ts'
import { listOf } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listReversalsQuery = adminQuery({
  id: 'reversals.list',
  path: '/admin/projects/:project_id/reversals',
  summary: "List a project's pending reversals",
  description:
    'The fields that have a temporary value, at most four, with the value that is restored when it expires. All are on one page.',
  params: ProjectParams,
  query: {},
  answer: listOf(Reversal),
  run: ({ db, params }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const rows = await listReversals(tx, id)
      return { answer: { data: rows.map(reversalView), next_cursor: null } }
    }),
})
