import Type from 'typebox'
import { verifyAudit } from '../../core/audit/verify.ts'
import { nullable } from '../../core/wire.ts'
import { Id } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'
import { NoParams } from '../parameters.ts'

const Verification = Type.Object(
  {
    ok: Type.Boolean(),
    rows: Type.Integer({ description: 'Rows read.' }),
    chains: Type.Integer(),
    checkpoints: Type.Integer(),
    erased: Type.Integer({ description: 'Rows whose personal data was erased, which is no fault.' }),
    first_bad: nullable(
      Type.Object(
        {
          chain: nullable(Type.Integer()),
          seq: nullable(Type.Integer()),
          problem: Type.String({ description: 'A sentence.' }),
        },
        { additionalProperties: false },
      ),
    ),
    notes: Type.Array(Type.String(), { description: 'What could not be checked, and why.' }),
  },
  { title: 'AuditVerification', additionalProperties: false },
)

export const verifyAuditQuery = adminQuery({
  id: 'audit.verify',
  path: '/admin/audit/verify',
  summary: 'Verify the audit',
  description:
    'Reads every row again and checks hashes, order, personal data and signed checkpoints; names the first row that is not as it was written. Takes about a minute for some million rows.',
  params: NoParams,
  query: { project_id: Type.Optional({ ...Id, description: 'Only the chain of this project.' }) },
  answer: Verification,
  run: async ({ db, query, audit }) => ({
    answer: await verifyAudit(db, { ...audit, projectId: query.project_id }),
  }),
})
