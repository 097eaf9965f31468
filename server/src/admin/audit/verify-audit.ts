import Type from 'typebox'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { nullable } from '../../core/shared/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const Verification = Type.Object(
  {
    ok: Type.Boolean({ description: 'Whether nothing was found wrong.' }),
    signed: Type.Boolean({
      description:
        'Whether a signed checkpoint covers any of it. Hashes alone prove nothing against an attacker with write access to the database.',
    }),
    rows: Type.Integer({ description: 'Rows read.' }),
    chains: Type.Integer(),
    checkpoints: Type.Integer(),
    erased: Type.Integer({ description: 'How often personal data was erased. An erasure is not a fault.' }),
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

/** Each keeps a processor and a connection busy, so that a few would take the process from everybody else. */
let isRunning = false
const retryAfterSeconds = 30

export const verifyAuditQuery = adminQuery({
  id: 'audit.verify',
  path: '/admin/audit/verify',
  summary: 'Verify the audit',
  description:
    'Reads every row again and checks hashes, order, times, personal data and signed checkpoints; names the first row that is not as it was written. Takes about a minute for some million rows, so one runs at a time: another is refused with 503 until it is done. With a `project_id` that has no rows, as one that does not exist, the answer is `ok` with 0 `rows`.',
  params: NoParams,
  query: {
    project_id: Type.Optional({
      ...Id,
      description: 'Only the chain of this project; 0 for what belongs to none.',
    }),
  },
  hasHead: false,
  answer: Verification,
  async run({ db, query, audit, signal }) {
    if (isRunning) {
      throw new PosternError(
        'unavailable',
        'Another verification is under way. Try again when it is done, or run `postern audit verify` on the server.',
        { retryAfterSeconds },
      )
    }
    isRunning = true
    try {
      return { answer: await verifyAudit(db, { ...audit, projectId: query.project_id, signal }) }
    } finally {
      isRunning = false
    }
  },
})
