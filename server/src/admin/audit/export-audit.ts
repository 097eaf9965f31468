import { Readable } from 'node:stream'
import Type from 'typebox'
import { exportAudit } from '../../core/control/audit/export.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const exportAuditQuery = adminQuery({
  id: 'audit.export',
  path: '/admin/audit/export',
  summary: 'Export the audit',
  description:
    'Newline-delimited JSON, streamed: audit rows with the personal data beside them, then the checkpoints, last a line of `type` `end` that counts both. Times have up to six digits behind the second, as many as were hashed, where other answers have three. A file without that line was cut off. `next` in it is the `after` of the export that goes on from there. `postern audit verify --file` checks such a file anywhere.',
  params: NoParams,
  query: {
    project_id: Type.Optional({
      ...Id,
      description: 'The chain of one project; 0 for what belongs to none.',
    }),
    after: Type.Optional(
      Type.String({ maxLength: 4000, description: '`next` of an earlier export: only what came since.' }),
    ),
  },
  contentType: 'application/x-ndjson',
  hasHead: false,
  answer: Type.String(),
  async run({ db, query }) {
    const lines = exportAudit(db, { projectId: query.project_id, after: query.after })
    // The first line before the answer begins, so that a refusal still has a status.
    const first = await lines.next()
    return { stream: Readable.from(withFirst(first.value ?? '', lines)) }
  },
})

async function* withFirst(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first
  yield* rest
}
