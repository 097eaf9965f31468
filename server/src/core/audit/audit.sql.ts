import { type Selectable, type SqlBool, sql } from 'kysely'
import type { ReadTx, Schema } from '../../platform/db/db.ts'

/** What can be asked for; everything left out means any. */
export interface AuditQuery {
  /** 0 for what belongs to none. */
  projectId?: number | undefined
  actor?: number | undefined
  operation?: string | undefined
  /** A type, or a type and an id. */
  resource?: [type: string, id?: string] | undefined
  from?: Date | undefined
  /** Not included. */
  to?: Date | undefined
  limit: number
  beforeId?: number | undefined
}

type Row = Selectable<Schema['control.audit']>
type Person = Selectable<Schema['control.audit_people']>

/** A row with the people beside it; null where there is none, or none any more. */
export type AuditRow = Omit<Row, 'actor_digest' | 'subject_digest' | 'xid'> & {
  actor_email: Person['email']
  actor_ip: Person['ip']
  actor_user_agent: Person['user_agent']
  subject_email: Person['email']
  subject_name: Person['name']
}

const maxNumber = Number.MAX_SAFE_INTEGER

/** A forged number may be larger than JavaScript's: the largest is shown in its place, and verification names the row. */
const number = <Column extends 'chain' | 'seq' | 'id' | 'actor_id' | 'project_id'>(column: Column) =>
  sql<
    Row[Column]
  >`case when ${sql.ref(`a.${column}`)} between ${sql.lit(-maxNumber)} and ${sql.lit(maxNumber)}
    then ${sql.ref(`a.${column}`)} when ${sql.ref(`a.${column}`)} is not null then ${sql.lit(maxNumber)} end`.as(
    column,
  )

const rows = (tx: ReadTx) =>
  tx
    .selectFrom('control.audit as a')
    .leftJoin('control.audit_people as actor', (join) =>
      join.onRef('actor.audit_id', '=', 'a.id').on('actor.part', '=', 'actor'),
    )
    .leftJoin('control.audit_people as subject', (join) =>
      join.onRef('subject.audit_id', '=', 'a.id').on('subject.part', '=', 'subject'),
    )
    .select([
      number('chain'),
      number('seq'),
      number('id'),
      'a.at',
      number('actor_id'),
      'a.request_id',
      'a.operation',
      number('project_id'),
      'a.resource_type',
      'a.resource_id',
      'a.reason',
      'a.before',
      'a.after',
      'a.related',
      'a.limit_exception',
      'a.prev_hash',
      'a.hash',
      'actor.email as actor_email',
      'actor.ip as actor_ip',
      'actor.user_agent as actor_user_agent',
      'subject.email as subject_email',
      'subject.name as subject_name',
    ])

export const find = (tx: ReadTx, id: number): Promise<AuditRow | undefined> =>
  rows(tx).where('a.id', '=', id).executeTakeFirst()

/**
 * Ids follow time but for what overlaps, so a stretch of time is also one of ids, an hour wider at either end:
 * a thousand times what a transaction lasts. Without it PostgreSQL reads back from the newest row to the
 * stretch. A clock that was set back by more than that can hide a row from a search by time.
 */
const idsBefore = (to: Date) => sql<SqlBool>`a.id < coalesce((
  select id from control.audit where at >= ${to}::timestamptz + interval '1 hour' order by at, id limit 1), 9007199254740991)`

const idsFrom = (from: Date) => sql<SqlBool>`a.id > coalesce((
  select id from control.audit where at < ${from}::timestamptz - interval '1 hour' order by at desc, id desc limit 1), 0)`

export function list(tx: ReadTx, query: AuditQuery): Promise<AuditRow[]> {
  const { projectId, actor, operation, resource, from, to, limit, beforeId } = query
  let found = rows(tx).orderBy('a.id', 'desc').limit(limit)
  if (projectId !== undefined) found = found.where('a.chain', '=', projectId)
  if (actor !== undefined) found = found.where('a.actor_id', '=', actor)
  if (operation !== undefined) found = found.where('a.operation', '=', operation)
  if (resource !== undefined) found = found.where('a.resource_type', '=', resource[0])
  if (resource?.[1] !== undefined) found = found.where('a.resource_id', '=', resource[1])
  if (from !== undefined) found = found.where('a.at', '>=', from).where(idsFrom(from))
  if (to !== undefined) found = found.where('a.at', '<', to).where(idsBefore(to))
  if (beforeId !== undefined) found = found.where('a.id', '<', beforeId)
  return found.execute()
}
