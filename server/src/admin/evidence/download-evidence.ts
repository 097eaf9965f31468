import { Readable } from 'node:stream'
import Type from 'typebox'
import { recordLookup } from '../../core/control/audit/lookups.ts'
import { openFile } from '../../core/control/evidence/evidence.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const id = 'evidence.download'

export const downloadEvidenceQuery = adminQuery({
  id,
  path: '/admin/projects/:project_id/evidence/:id/file',
  summary: 'Download evidence',
  description:
    'Streams the file as newline-delimited JSON. Keep its bytes unchanged: every byte is signed. Returns 404 until the file is `ready`. Each download is recorded as a lookup.',
  params: ProjectItemParams,
  query: {},
  contentType: 'application/x-ndjson',
  hasHead: false,
  answer: Type.String(),
  async run({ db, actorId, requestId, params: { project_id, id: evidenceId } }) {
    const chunks = await openFile(db, project_id, evidenceId)
    const question = `evidence ${evidenceId}`
    await recordLookup(db, { actorId, operation: id, question, projectIds: [project_id], requestId })
    return { stream: Readable.from(chunks) }
  },
})
