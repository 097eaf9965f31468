import { evidenceView, listEvidence } from '../../core/control/evidence/evidence.ts'
import { Evidence } from '../../core/control/evidence/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { listOf, newestFirst, PageQuery, type Range } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listEvidenceQuery = adminQuery({
  id: 'evidence.list',
  path: '/admin/projects/:project_id/evidence',
  summary: "List a project's evidence",
  description: 'Requested files, newest first. They are deleted 7 days after the request.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Evidence),
  run: ({ db, params, query }) =>
    db.read(async (tx) => {
      const { id } = await findProject(tx, params.project_id)
      const fetch = (range: Range) => listEvidence(tx, id, range)
      return { answer: await newestFirst(query, fetch, evidenceView) }
    }),
})
