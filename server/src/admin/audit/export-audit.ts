import { Readable } from 'node:stream'
import Type from 'typebox'
import { exportAudit } from '../../core/control/audit/export.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const exportAuditQuery = adminQuery({
  id: 'audit.export',
  path: '/admin/audit/export',
  summary: 'Export the audit log',
  description:
    'Streams newline-delimited JSON: audit entries with their personal data, then the checkpoints, then a line with `type` `end` that contains the count of each. A file without that line is truncated. To continue the export later, pass `next` from that line as `after`. Timestamps have up to six fractional digits, exactly as hashed; in other responses they have three. `postern audit verify --file` verifies the file on any machine.',
  params: NoParams,
  query: {
    project_id: Type.Optional({
      ...Id,
      description: 'Only the chain of this project; 0 selects entries that do not belong to a project.',
    }),
    after: Type.Optional(
      Type.String({
        maxLength: 4000,
        description: '`next` from an earlier export. Returns only entries committed since then.',
      }),
    ),
  },
  contentType: 'application/x-ndjson',
  hasHead: false,
  answer: Type.String(),
  async run({ db, query }) {
    const lines = exportAudit(db, { projectId: query.project_id, after: query.after })
    // Reads the first line before the response starts, so that an error can still set the status code.
    const first = await lines.next()
    return { stream: Readable.from(withFirst(first.value ?? '', lines)) }
  },
})

async function* withFirst(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first
  yield* rest
}
