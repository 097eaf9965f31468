import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  continueScan,
  type ScanPosition,
  type ScanResult,
  scanMs,
  scanResultOf,
} from '../../shared/bounded-scan.ts'
import { nullable, Timestamp } from '../../shared/wire.ts'
import { withAddresses } from './addresses.ts'
import { type AuditRow, find, findMany } from './audit.sql.ts'
import { type AuditSearch, findIds, findKinds, look } from './search.sql.ts'

export type { AuditRow, AuditSearch }

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

/** With the addresses beside it; null for one that was erased. */
const whole = (row: AuditRow, part: 'before' | 'after' | 'related') =>
  withAddresses(row[part], part, new Map(Object.entries(row.addresses)))

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
  before: shown(whole(row, 'before')),
  after: shown(whole(row, 'after')),
  related: shown(whole(row, 'related') ?? []),
  limit_exception: shown(row.limit_exception),
  subject: row.subject_email === null ? null : { email: row.subject_email, name: row.subject_name },
  prev_hash: row.prev_hash.toString('hex'),
  hash: row.hash.toString('hex'),
})

// Rows looked at: in an index, and in the table itself, where those of one resource lie scattered. Either takes about
// 5 ms on two shared cores while it is in memory.
export const auditBounds = { inIndex: 10_000, inTable: 1_000, scanMs }

/**
 * Newest first. One resource's rows are looked through for the rest of what is asked for. Otherwise an index has the
 * rows of each kind in order, all of them, a project's or an actor's, and the newest of all kinds are the answer: only
 * an actor within a project, and the ends of a stretch of time, are looked for row by row.
 */
export async function searchAudit(
  tx: ReadTx,
  search: AuditSearch,
  bounds = auditBounds,
): Promise<ScanResult<AuditRow>> {
  const { projectId, actor, operation, resource, from, to, beforeId } = search
  const deadline = performance.now() + bounds.scanMs
  const ids = from || to ? await findIds(tx, search) : { above: null, below: null }
  const isOfOne = resource?.[1] !== undefined
  const isNarrowed = [projectId, actor, operation, resource].some((filter) => filter !== undefined)
  const kinds = isNarrowed && !isOfOne ? await findKinds(tx, search) : undefined
  if (kinds?.length === 0) return { rows: [], next: null }
  const bound = isOfOne ? bounds.inTable : Math.ceil(bounds.inIndex / (kinds?.length ?? 1))
  const lookFrom = async (
    beforeId: number | undefined,
    limit: number,
  ): Promise<ScanResult<{ id: string }>> => {
    const found = await look(tx, { ...search, beforeId, limit }, { kinds, ids, bound })
    const stop = found.stop === null ? null : placeOf({ id: found.stop })
    return scanResultOf(
      found.ids.map((id) => ({ id })),
      limit,
      placeOf,
      stop,
    )
  }
  const first = await lookFrom(beforeId, search.limit)
  const { rows, next } = await continueScan(first, search.limit, deadline, ({ id }, limit) =>
    lookFrom(id, limit),
  )
  return {
    rows:
      rows.length === 0
        ? []
        : await findMany(
            tx,
            rows.map(({ id }) => id),
          ),
    next,
  }
}

/** A forged number may be larger than JavaScript's. */
const placeOf = ({ id }: { id: string }): ScanPosition => ({
  key: null,
  id: Math.min(Number(id), Number.MAX_SAFE_INTEGER),
})

export async function findAudit(tx: ReadTx, id: number): Promise<AuditRow> {
  const row = await find(tx, id)
  if (!row) throw new PosternError('not_found', `There is no audit row ${id}.`)
  return row
}
