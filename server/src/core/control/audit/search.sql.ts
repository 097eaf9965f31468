import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { allOf } from '../../shared/bounded-scan.ts'

/** What can be asked for; everything left out means any. */
export interface AuditSearch {
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

/** An operation with the type of what it acts upon. There are some dozens, and an operation has one type. */
export interface Kind {
  operation: string
  resource_type: string
}

/**
 * Those there are, found by leaping from one to the next in an index. All of them, whatever is asked for: with an
 * operation as a further condition PostgreSQL would go through the rows of that operation, not leap.
 */
export async function findKinds(tx: ReadTx, { operation, resource }: AuditSearch): Promise<Kind[]> {
  const { rows } = await sql<Kind>`
    with recursive kinds as (
      (select operation, resource_type from control.audit order by operation, resource_type limit 1)
      union all
      select next.operation, next.resource_type from kinds cross join lateral (
        select operation, resource_type from control.audit
         where (operation, resource_type) > (kinds.operation, kinds.resource_type)
         order by operation, resource_type limit 1) as next
    )
    select operation, resource_type from kinds
     where ${allOf([
       ...(operation === undefined ? [] : [sql<boolean>`operation = ${operation}`]),
       ...(resource === undefined ? [] : [sql<boolean>`resource_type = ${resource[0]}`]),
     ])}`.execute(tx)
  return rows
}

/** Between which ids, both excluded, to look for a stretch of time. Text: a forged one may be larger than JavaScript's. */
export interface Ids {
  above: string | null
  below: string | null
}

/**
 * Ids follow time but for what overlaps, so a stretch of time is also one of ids, an hour wider at either end:
 * a thousand times what a transaction lasts. A clock that was set back by more than that can hide a row from a
 * search by time.
 */
export async function findIds(tx: ReadTx, { from, to }: AuditSearch): Promise<Ids> {
  const { rows } = await sql<Ids>`
    select (select id from control.audit where at < ${from ?? null}::timestamptz - interval '1 hour'
             order by at desc, id desc limit 1)::text as above,
           (select id from control.audit where at >= ${to ?? null}::timestamptz + interval '1 hour'
             order by at, id limit 1)::text as below`.execute(tx)
  return rows[0] ?? { above: null, below: null }
}

const isKind = sql<boolean>`a.operation = kind.operation and a.resource_type = kind.resource_type`

/**
 * The rows of one stretch of an index, newest first, and what else they must be. Rows of a resource are few; whatever
 * else is asked for is asked of the rows of each kind.
 */
function stretchOf(
  { projectId, actor, operation, resource, from, to }: AuditSearch,
  kinds: Kind[] | undefined,
) {
  const isOfProject = projectId === undefined ? [] : [sql<boolean>`a.chain = ${projectId}`]
  const isOfActor = actor === undefined ? [] : [sql<boolean>`a.actor_id = ${actor}`]
  const isOperation = operation === undefined ? [] : [sql<boolean>`a.operation = ${operation}`]
  const isInTime = [
    ...(from === undefined ? [] : [sql<boolean>`a.at >= ${from}`]),
    ...(to === undefined ? [] : [sql<boolean>`a.at < ${to}`]),
  ]
  if (resource?.[1] !== undefined) {
    const isResource = sql<boolean>`a.resource_type = ${resource[0]} and a.resource_id = ${resource[1]}`
    return { within: [isResource], passes: [...isOfProject, ...isOfActor, ...isOperation, ...isInTime] }
  }
  if (kinds === undefined) return { within: [], passes: isInTime }
  if (projectId !== undefined)
    return { within: [...isOfProject, isKind], passes: [...isOfActor, ...isInTime] }
  return { within: [...isOfActor, isKind], passes: isInTime }
}

export interface Bounds {
  /** Undefined: rows of any kind, as one stretch. */
  kinds: Kind[] | undefined
  ids: Ids
  /** Rows looked at in each stretch. */
  bound: number
}

/** Ids of up to one row more than fits, newest first, and where the bound was reached before, if it was. */
export async function look(
  tx: ReadTx,
  search: AuditSearch,
  { kinds, ids, bound }: Bounds,
): Promise<{ ids: string[]; stop: string | null }> {
  const { within, passes } = stretchOf(search, kinds)
  const places = [
    ...(search.beforeId === undefined ? [] : [sql<boolean>`a.id < ${search.beforeId}`]),
    ...(ids.below === null ? [] : [sql<boolean>`a.id < ${ids.below}::bigint`]),
    ...(ids.above === null ? [] : [sql<boolean>`a.id > ${ids.above}::bigint`]),
  ]
  const stretch = sql`from control.audit as a where ${allOf([...places, ...within])} order by a.id desc`
  const most = sql.lit(search.limit + 1)
  const hasPasses = passes.length > 0
  const newest = hasPasses
    ? sql`select id from (select a.id, ${allOf(passes)} as passes ${stretch} limit ${sql.lit(bound)}) as looked
           where passes limit ${most}`
    : sql`select a.id ${stretch} limit ${most}`
  const last = hasPasses
    ? sql`select a.id ${stretch} offset ${sql.lit(bound - 1)} limit 1`
    : sql`select null::bigint as id`
  const { rows } = await sql<{ ids: string[]; stop: string | null }>`
    with found as (select newest.id from ${each(kinds)} cross join lateral (${newest}) as newest),
    stop as (select max(last.id) as id from ${each(kinds)} cross join lateral (${last}) as last)
    select stop.id::text as stop, array(
      select found.id::text from found where stop.id is null or found.id >= stop.id
       order by found.id desc limit ${most}) as ids
      from stop`.execute(tx)
  return rows[0] ?? { ids: [], stop: null }
}

/** One stretch for each kind, or one in all. A row beyond the place where one of them stopped is for the next page. */
const each = (kinds: Kind[] | undefined): RawBuilder<unknown> =>
  kinds === undefined
    ? sql`(select) as one`
    : sql`unnest(${kinds.map(({ operation }) => operation)}::text[], ${kinds.map(
        ({ resource_type }) => resource_type,
      )}::text[]) as kind (operation, resource_type)`
