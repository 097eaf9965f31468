import { type Selectable, type SqlBool, sql } from 'kysely'
import type { ReadTx, Schema } from '../../../platform/db/db.ts'
import { firstOfList } from './addresses.ts'

type Row = Selectable<Schema['control.audit']>
type Person = Selectable<Schema['control.audit_people']>

/** A row with its personal data. Absent and erased data is null. */
export type AuditRow = Omit<Row, 'actor_digest' | 'subject_digest' | 'xid'> & {
  actor_email: Person['email']
  actor_ip: Person['ip']
  actor_user_agent: Person['user_agent']
  subject_email: Person['email']
  subject_name: Person['name']
  /** All addresses stored for the row, by part. For an address in a change, the part is the path of its field. */
  addresses: Record<string, string | null>
}

const maxNumber = Number.MAX_SAFE_INTEGER

/**
 * A forged number can exceed JavaScript's range. In that case, the query returns the largest safe integer, and verification
 * reports the row.
 */
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
      'a.actor_kind',
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
      'a.bulk_id',
      'a.prev_hash',
      'a.hash',
      'actor.email as actor_email',
      'actor.ip as actor_ip',
      'actor.user_agent as actor_user_agent',
      'subject.email as subject_email',
      'subject.name as subject_name',
      sql<Record<string, string | null>>`(
        select coalesce(json_object_agg(p.part, coalesce(p.email, p.name)), '{}') from control.audit_people p
         where p.audit_id = a.id and p.part < ${firstOfList})`.as('addresses'),
    ])

export const find = (tx: ReadTx, id: number): Promise<AuditRow | undefined> =>
  rows(tx).where('a.id', '=', id).executeTakeFirst()

/** Newest first. */
export const findMany = (tx: ReadTx, ids: string[]): Promise<AuditRow[]> =>
  rows(tx).where(sql<SqlBool>`a.id = any(${ids}::bigint[])`).orderBy('a.id', 'desc').execute()
