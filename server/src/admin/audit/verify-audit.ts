import Type from 'typebox'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { nullable } from '../../core/shared/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const Verification = Type.Object(
  {
    ok: Type.Boolean({ description: 'Whether verification found no problem.' }),
    signed: Type.Boolean({
      description:
        'Whether any checkpoint is signed with a known key. Hashes without a signature give no protection against an attacker with write access to the database.',
    }),
    rows: Type.Integer({ description: 'The number of rows read.' }),
    chains: Type.Integer(),
    checkpoints: Type.Integer(),
    erased: Type.Integer({
      description: 'The number of personal data entries that were erased. Erasure is not an error.',
    }),
    first_bad: nullable(
      Type.Object(
        {
          chain: nullable(Type.Integer()),
          seq: nullable(Type.Integer()),
          problem: Type.String({ description: 'The first problem found, as a sentence.' }),
        },
        { additionalProperties: false },
      ),
    ),
    notes: Type.Array(Type.String(), {
      description: 'Limitations of the verification, for example a missing checkpoint file.',
    }),
  },
  { title: 'AuditVerification', additionalProperties: false },
)

/**
 * A verification occupies a CPU core and a connection, so several concurrent ones would slow down all other requests.
 */
let isRunning = false
const retryAfterSeconds = 30

export const verifyAuditQuery = adminQuery({
  id: 'audit.verify',
  path: '/admin/audit/verify',
  summary: 'Verify the audit log',
  description:
    'Reads every row, checks hashes, order, times, personal data and signed checkpoints, and reports the first problem. About ten thousand rows are verified per second. Only one verification runs at a time; a second request returns 503. If the `project_id` has no rows or does not exist, the response is `ok` with 0 `rows`.',
  params: NoParams,
  query: {
    project_id: Type.Optional({
      ...Id,
      description: 'Only the chain of this project; 0 selects entries that do not belong to a project.',
    }),
  },
  hasHead: false,
  answer: Verification,
  async run({ db, query, audit, signal }) {
    if (isRunning) {
      throw new PosternError(
        'unavailable',
        'Another verification is running. Try again later, or run `postern audit verify` on the server.',
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
