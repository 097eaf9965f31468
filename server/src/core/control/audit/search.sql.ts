import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { allOf } from '../../shared/bounded-scan.ts'

/** List filters. An absent filter matches every row. */
export interface AuditSearch {
  /** 0 for changes that do not belong to a project. */
  projectId?: number | undefined
  actor?: number | undefined
  operation?: string | undefined
  /** A type, or a type and an id. */
  resource?: [type: string, id?: string] | undefined
  from?: Date | undefined
  /** Exclusive. */
  to?: Date | undefined
  limit: number
  beforeId?: number | undefined
}

/** An operation and the resource type that it changes. There are a few dozen kinds. Each operation has one resource type. */
export interface Kind {
  operation: string
  resource_type: string
}

/**
 * The existing kinds, found with a loose index scan. The recursion visits all kinds, and the filter is applied afterwards.
 * With the operation as an inner condition, PostgreSQL would scan all rows of that operation.
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

/** The id range of a time range, exclusive at both ends. Text, because a forged id can exceed JavaScript's range. */
export interface IdRange {
  above: string | null
  below: string | null
}

/**
 * Ids increase with time except in overlapping transactions. A time range therefore maps to an id range that is one hour
 * wider at each end. An hour is a thousand times the duration of a transaction. If the clock was set back by more than that,
 * a search by time can miss a row.
 */
export async function findIds(tx: ReadTx, { from, to }: AuditSearch): Promise<IdRange> {
  const { rows } = await sql<IdRange>`
    select (select id from control.audit where at < ${from ?? null}::timestamptz - interval '1 hour'
             order by at desc, id desc limit 1)::text as above,
           (select id from control.audit where at >= ${to ?? null}::timestamptz + interval '1 hour'
             order by at, id limit 1)::text as below`.execute(tx)
  return rows[0] ?? { above: null, below: null }
}

const isKind = sql<boolean>`a.operation = kind.operation and a.resource_type = kind.resource_type`

/**
 * The conditions of one index range, and the remaining filters. A search for one resource scans its few rows. Other searches
 * scan the rows of each kind.
 */
function indexRangeOf(
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
  /** If undefined, all rows are scanned as one range. */
  kinds: Kind[] | undefined
  ids: IdRange
  /** The maximum number of rows scanned in each range. */
  bound: number
}

/** The ids of up to `limit + 1` rows, newest first, and the id at which the scan reached its bound, or null. */
export async function scan(
  tx: ReadTx,
  search: AuditSearch,
  { kinds, ids, bound }: Bounds,
): Promise<{ ids: string[]; stop: string | null }> {
  const { within, passes } = indexRangeOf(search, kinds)
  const idConditions = [
    ...(search.beforeId === undefined ? [] : [sql<boolean>`a.id < ${search.beforeId}`]),
    ...(ids.below === null ? [] : [sql<boolean>`a.id < ${ids.below}::bigint`]),
    ...(ids.above === null ? [] : [sql<boolean>`a.id > ${ids.above}::bigint`]),
  ]
  const range = sql`from control.audit as a where ${allOf([...idConditions, ...within])} order by a.id desc`
  const most = sql.lit(search.limit + 1)
  const hasPasses = passes.length > 0
  const newest = hasPasses
    ? sql`select id from (select a.id, ${allOf(passes)} as passes ${range} limit ${sql.lit(bound)}) as scanned
           where passes limit ${most}`
    : sql`select a.id ${range} limit ${most}`
  const last = hasPasses
    ? sql`select a.id ${range} offset ${sql.lit(bound - 1)} limit 1`
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

/** One range for each kind, or one for all rows. Rows older than the id at which a range stopped are left for the next page. */
const each = (kinds: Kind[] | undefined): RawBuilder<unknown> =>
  kinds === undefined
    ? sql`(select) as one`
    : sql`unnest(${kinds.map(({ operation }) => operation)}::text[], ${kinds.map(
        ({ resource_type }) => resource_type,
      )}::text[]) as kind (operation, resource_type)`
