import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { nullable, Timestamp } from '../wire.ts'
import { type AuditQuery, type AuditRow, find, list } from './audit.sql.ts'

export type { AuditQuery, AuditRow }

const Values = nullable(Type.Object({}, { additionalProperties: true }))

export const AuditEntryView = Type.Object(
  {
    id: Type.Integer(),
    chain: Type.Integer({ description: 'The project, or 0 for what belongs to none.' }),
    seq: Type.Integer({ description: 'The place in the chain, without gaps.' }),
    at: Timestamp,
    actor: Type.Object(
      {
        id: Type.Integer({ description: "The user; 0 is the server's own shell." }),
        email: nullable(Type.String()),
        ip: nullable(Type.String()),
        user_agent: nullable(Type.String()),
      },
      { additionalProperties: false, description: 'Null for what was erased.' },
    ),
    request_id: Type.String(),
    operation: Type.String(),
    project_id: nullable(Type.Integer()),
    resource_type: Type.String(),
    resource_id: Type.String(),
    reason: nullable(Type.String()),
    before: Values,
    after: Values,
    related: Type.Array(
      Type.Object(
        {
          resource: Type.String(),
          id: Type.Union([Type.String(), Type.Integer()]),
          before: Values,
          after: Values,
        },
        { additionalProperties: false },
      ),
      { description: 'What else the act changed.' },
    ),
    limit_exception: nullable(
      Type.Object(
        { limit: Type.String(), value: Type.Integer(), count: Type.Integer() },
        { additionalProperties: false, description: 'The customer limit that was passed.' },
      ),
    ),
    subject: nullable(
      Type.Object(
        { email: nullable(Type.String()), name: nullable(Type.String()) },
        { additionalProperties: false, description: 'The person acted upon; null when erased.' },
      ),
    ),
    prev_hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
    hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
  },
  { title: 'AuditEntry', additionalProperties: false },
)

type View = Static<typeof AuditEntryView>

/** Far deeper than anything Postern writes. */
const maxDepth = 100

/**
 * What a stranger has put into the database can be nested so deeply that it cannot be written as JSON: then the list
 * says so in its place, and verification names the row.
 */
function shown<T>(value: unknown): T {
  return (
    isDeeper(value, maxDepth) ? { unreadable: 'This is nested too deeply. Verify the audit.' } : value
  ) as T
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1)))

/** PostgreSQL knows times that JavaScript does not, infinity among them. */
const momentOf = (at: Date | number): string => {
  const moment = new Date(at)
  return Number.isNaN(moment.getTime()) ? 'unreadable' : moment.toISOString()
}

export const auditView = (row: AuditRow): View => ({
  id: row.id,
  chain: row.chain,
  seq: row.seq,
  at: momentOf(row.at),
  actor: { id: row.actor_id, email: row.actor_email, ip: row.actor_ip, user_agent: row.actor_user_agent },
  request_id: row.request_id,
  operation: row.operation,
  project_id: row.project_id,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  reason: row.reason,
  before: shown(row.before),
  after: shown(row.after),
  related: shown(row.related ?? []),
  limit_exception: shown(row.limit_exception),
  subject: row.subject_email === null ? null : { email: row.subject_email, name: row.subject_name },
  prev_hash: row.prev_hash.toString('hex'),
  hash: row.hash.toString('hex'),
})

/** Newest first. */
export const listAudit = (tx: ReadTx, query: AuditQuery): Promise<AuditRow[]> => list(tx, query)

export async function findAudit(tx: ReadTx, id: number): Promise<AuditRow> {
  const row = await find(tx, id)
  if (!row) throw new PosternError('not_found', `There is no audit row ${id}.`)
  return row
}
