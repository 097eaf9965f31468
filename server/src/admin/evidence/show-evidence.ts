import { evidenceView, findEvidence } from '../../core/control/evidence/evidence.ts'
import { Evidence } from '../../core/control/evidence/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showEvidenceQuery = adminQuery({
  id: 'evidence.show',
  path: '/admin/projects/:project_id/evidence/:id',
  summary: 'Show evidence',
  description: 'A requested file: its progress and, once it is `ready`, its path.',
  params: ProjectItemParams,
  query: {},
  answer: Evidence,
  run: async ({ db, params: { project_id, id } }) => ({
    answer: evidenceView(await db.read((tx) => findEvidence(tx, project_id, id))),
  }),
})
