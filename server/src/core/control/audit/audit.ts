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
import { type ActorKind, actorKinds } from './chain.ts'
import { type AuditSearch, findIds, findKinds, scan } from './search.sql.ts'

export type { AuditRow, AuditSearch }

const Values = nullable(Type.Object({}, { additionalProperties: true }))

export const AuditEntryView = Type.Object(
  {
    id: Type.Integer(),
    chain: Type.Integer({
      description: 'The id of the project, or 0 for changes that do not belong to a project.',
    }),
    seq: Type.Integer({ description: 'The sequence number in the chain, without gaps.' }),
    at: Timestamp,
    actor_kind: Type.Enum(actorKinds, {
      type: 'string',
      description:
        'A signed-in user (`person`), a `postern` command on the server (`shell`) or Postern itself (`system`). `policy` and `service_account` are reserved.',
    }),
    actor: Type.Object(
      {
        id: Type.Integer({ description: 'The id of the user; 0 for `shell` and `system`.' }),
        email: nullable(Type.String()),
        ip: nullable(Type.String()),
        user_agent: nullable(Type.String()),
      },
      { additionalProperties: false, description: 'Erased fields are null.' },
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
      { description: 'Other resources that the operation changed.' },
    ),
    limit_exception: nullable(
      Type.Object(
        { limit: Type.String(), value: Type.Integer(), count: Type.Integer() },
        { additionalProperties: false, description: 'The plan limit that the change exceeded.' },
      ),
    ),
    bulk_id: nullable(
      Type.String({ format: 'uuid', description: 'The id of the bulk action that the entry is part of.' }),
    ),
    subject: nullable(
      Type.Object(
        { email: nullable(Type.String()), name: nullable(Type.String()) },
        {
          additionalProperties: false,
          description:
            'The user or member that the operation changed. Null if there is none or the data was erased.',
        },
      ),
    ),
    prev_hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
    hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
  },
  { title: 'AuditEntry', additionalProperties: false },
)

type View = Static<typeof AuditEntryView>

/** Postern does not write deeper values. */
const maxDepth = 100

/**
 * A forged value can be nested too deeply for JSON.stringify. The API then returns a placeholder, and verification reports
 * the row.
 */
function orPlaceholder<T>(value: unknown): T {
  return (
    isDeeper(value, maxDepth)
      ? { unreadable: 'This value is nested too deeply. Verify the audit log.' }
      : value
  ) as T
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1)))

/** PostgreSQL supports timestamps that JavaScript does not, such as infinity. */
const timeOf = (at: Date | number): string => {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? 'unreadable' : time.toISOString()
}

/** The value with its addresses restored. Erased addresses are null. */
const completed = (row: AuditRow, part: 'before' | 'after' | 'related') =>
  withAddresses(row[part], part, new Map(Object.entries(row.addresses)))

export const auditView = (row: AuditRow): View => ({
  id: row.id,
  chain: row.chain,
  seq: row.seq,
  at: timeOf(row.at),
  actor_kind: row.actor_kind as ActorKind,
  actor: { id: row.actor_id, email: row.actor_email, ip: row.actor_ip, user_agent: row.actor_user_agent },
  request_id: row.request_id,
  operation: row.operation,
  project_id: row.project_id,
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  reason: row.reason,
  before: orPlaceholder(completed(row, 'before')),
  after: orPlaceholder(completed(row, 'after')),
  related: orPlaceholder(completed(row, 'related') ?? []),
  limit_exception: orPlaceholder(row.limit_exception),
  bulk_id: row.bulk_id,
  subject: row.subject_email === null ? null : { email: row.subject_email, name: row.subject_name },
  prev_hash: row.prev_hash.toString('hex'),
  hash: row.hash.toString('hex'),
})

// The maximum number of rows scanned in an index, and the lower maximum for scans of the table, where one resource's rows
// are scattered. Each scan takes about 5 ms on two shared cores if the pages are cached.
export const auditBounds = { inIndex: 10_000, inTable: 1_000, scanMs }

/**
 * Returns the newest rows first. A search for one resource scans and filters the rows of that resource. Any other search
 * reads the newest rows of each kind from an index (over all rows, a project's rows or an actor's rows) and merges them.
 * Rows are filtered one by one only in a search for an actor within a project or for a time range.
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
  const scanFrom = async (
    beforeId: number | undefined,
    limit: number,
  ): Promise<ScanResult<{ id: string }>> => {
    const found = await scan(tx, { ...search, beforeId, limit }, { kinds, ids, bound })
    const stop = found.stop === null ? null : positionOf({ id: found.stop })
    return scanResultOf(
      found.ids.map((id) => ({ id })),
      limit,
      positionOf,
      stop,
    )
  }
  const first = await scanFrom(beforeId, search.limit)
  const { rows, next } = await continueScan(first, search.limit, deadline, ({ id }, limit) =>
    scanFrom(id, limit),
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

/** A forged number can exceed JavaScript's range. */
const positionOf = ({ id }: { id: string }): ScanPosition => ({
  key: null,
  id: Math.min(Number(id), Number.MAX_SAFE_INTEGER),
})

export async function findAudit(tx: ReadTx, id: number): Promise<AuditRow> {
  const row = await find(tx, id)
  if (!row) throw new PosternError('not_found', `Audit entry ${id} does not exist.`)
  return row
}
