import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import {
  allOf,
  boundedScan,
  containsPattern,
  type ScanPosition,
  type ScanResult,
  scanResultOf,
} from '../../shared/bounded-scan.ts'
import { companions, type FlatRow, fields, type ProjectRow, rowOf } from './projects.sql.ts'
import type { ProjectSort } from './wire.ts'

/** The filters. An omitted filter matches every project. */
export interface ProjectSearch {
  q?: string | undefined
  locked?: boolean | undefined
  /** The current plan. */
  planId?: number | undefined
  minScore?: number | undefined
  maxScore?: number | undefined
  overLimit?: boolean | undefined
  sort: ProjectSort
  after: ScanPosition | undefined
  limit: number
}

const columnOf = {
  id: sql.ref('listing.project_id'),
  name: sql.ref('listing.folded_name'),
  reputation_score: sql.ref('listing.reputation_score'),
}

function orderOf(sort: ProjectSort) {
  const isDescending = sort.startsWith('-')
  const by = sort.replace('-', '') as keyof typeof columnOf
  return {
    by,
    column: columnOf[by],
    direction: sql.raw(isDescending ? 'desc' : 'asc'),
    isBehind: sql.raw(isDescending ? '<' : '>'),
  }
}

const inOrder = (sort: ProjectSort): RawBuilder<unknown> => {
  const { by, column, direction } = orderOf(sort)
  return by === 'id'
    ? sql`${column} ${direction}`
    : sql`${column} ${direction}, listing.project_id ${direction}`
}

const behind = ({ sort, after }: ProjectSearch): RawBuilder<boolean>[] => {
  if (!after) return []
  const { by, column, isBehind } = orderOf(sort)
  return [
    by === 'id'
      ? sql<boolean>`${column} ${isBehind} ${after.id}`
      : sql<boolean>`(${column}, listing.project_id) ${isBehind} (${after.key}, ${after.id})`,
  ]
}

const scoreWithin = ({ minScore, maxScore }: ProjectSearch): RawBuilder<boolean>[] => [
  ...(minScore === undefined ? [] : [sql<boolean>`listing.reputation_score >= ${minScore}`]),
  ...(maxScore === undefined ? [] : [sql<boolean>`listing.reputation_score <= ${maxScore}`]),
]

const isLocked = sql<boolean>`listing.is_locked`
const onPlan = (planId: number) => sql<boolean>`listing.plan_id = ${planId}`

/** The range of one index: all projects, the locked projects, or a plan's projects. */
const indexRange = ({ locked, planId }: ProjectSearch): RawBuilder<boolean>[] => {
  if (locked === true) return [isLocked]
  return planId === undefined ? [] : [onPlan(planId)]
}

const planJoin = ({ overLimit }: ProjectSearch): RawBuilder<unknown> =>
  overLimit === undefined ? sql`` : sql`join control.plans as plans on plans.id = listing.plan_id`

const beyondLimit = sql<boolean>`(listing.member_count > plans.max_users or listing.domain_count > plans.max_domains)`

const everyFilter = (search: ProjectSearch): RawBuilder<boolean>[] => {
  const { q, locked, planId, overLimit } = search
  return [
    ...(locked === undefined ? [] : [sql<boolean>`${isLocked} = ${locked}`]),
    ...(planId === undefined ? [] : [onPlan(planId)]),
    ...scoreWithin(search),
    ...(overLimit === undefined ? [] : [sql<boolean>`${beyondLimit} = ${overLimit}`]),
    ...(q === undefined ? [] : [sql<boolean>`listing.folded_name like ${containsPattern(q)}`]),
  ]
}

type PageRow = FlatRow & { key: string | number }

/**
 * Joins `found` to all columns of a project. The columns of `beside` are repeated in every row. There is always at least one
 * row.
 */
const page = ({ sort }: ProjectSearch, beside: RawBuilder<unknown>, from: RawBuilder<unknown>) => {
  const { direction } = orderOf(sort)
  return sql`
  select ${beside}, page.* from ${from} left join (
    select found.key, ${fields} from found
      join control.projects as projects on projects.id = found.project_id ${companions}
  ) as page on true order by page.key ${direction}, page.id ${direction}`
}

const found = (
  { sort, limit }: ProjectSearch,
  rows: PageRow[],
  stop: ScanPosition | null,
): ScanResult<ProjectRow> => {
  const { by } = orderOf(sort)
  const isThere = (row: PageRow | (PageRow & { id: null })): row is PageRow => row.id !== null
  const positionOf = ({ key, id }: PageRow): ScanPosition => ({ key: by === 'id' ? null : key, id })
  const { rows: shown, next } = scanResultOf(rows.filter(isThere), limit, positionOf, stop)
  return { rows: shown.map(({ key: _key, ...row }) => rowOf(row)), next }
}

/** Scans up to `bound` projects in the order of the list. */
export async function scan(
  tx: ReadTx,
  search: ProjectSearch,
  bound: number,
): Promise<ScanResult<ProjectRow>> {
  const { by, column } = orderOf(search.sort)
  const within = [
    ...indexRange(search),
    ...(by === 'reputation_score' ? scoreWithin(search) : []),
    ...behind(search),
  ]
  const parts = boundedScan({
    columns: sql`listing.project_id, ${column} as key`,
    from: sql`control.project_listing as listing`,
    joins: planJoin(search),
    within: allOf(within),
    order: inOrder(search.sort),
    passes: allOf(everyFilter(search)),
    bound,
    limit: search.limit,
  })
  const { rows } = await sql<PageRow & { stop_id: number | null; stop_key: string | number | null }>`
    with ${parts}
    ${page(search, sql`stop.project_id as stop_id, stop.key as stop_key`, sql`(select) as one left join stop on true`)}`.execute(
    tx,
  )
  const [first] = rows
  const stop =
    first === undefined || first.stop_id === null
      ? null
      : { key: by === 'id' ? null : first.stop_key, id: first.stop_id }
  return found(
    search,
    rows.map(({ stop_id: _id, stop_key: _key, ...row }) => row as PageRow),
    stop,
  )
}

/**
 * The complete result: all candidates of one filter, with the other filters applied, sorted. Undefined if there are more
 * than `bound` candidates.
 */
export async function scanCandidates(
  tx: ReadTx,
  search: ProjectSearch,
  few: RawBuilder<unknown>,
  bound: number,
): Promise<ScanResult<ProjectRow> | undefined> {
  const { column } = orderOf(search.sort)
  const wanted = allOf([...everyFilter(search), ...behind(search)])
  const { rows } = await sql<PageRow & { is_cut: boolean }>`
    with few as materialized (${few} limit ${sql.lit(bound + 1)}), found as (
      select listing.project_id, ${column} as key from few as listing ${planJoin(search)}
       where ${wanted} order by ${inOrder(search.sort)} limit ${sql.lit(search.limit + 1)}
    )
    ${page(search, sql`one.is_cut`, sql`(select count(*) > ${sql.lit(bound)} as is_cut from few) as one`)}`.execute(
    tx,
  )
  if (rows[0]?.is_cut !== false) return undefined
  return found(
    search,
    rows.map(({ is_cut: _isCut, ...row }) => row as PageRow),
    null,
  )
}

export const candidatesByScore = (search: ProjectSearch): RawBuilder<unknown> => sql`
  select listing.* from control.project_listing as listing
   where ${allOf([...indexRange(search), ...scoreWithin(search)])} order by listing.reputation_score`

/** Projects that exceed the member limit, then projects that exceed only the domain limit. Uses one index range per plan. */
export const candidatesBeyondLimit = ({ planId }: ProjectSearch, bound: number): RawBuilder<unknown> => {
  const within = (condition: RawBuilder<boolean>, order: RawBuilder<unknown>) => sql`
    select listing.* from control.plans as plans cross join lateral (
      select * from control.project_listing as listing where listing.plan_id = plans.id and ${condition}
       order by ${order} limit ${sql.lit(bound + 1)}) as listing
     where ${planId === undefined ? sql`true` : sql`plans.id = ${planId}`}`
  return sql`select * from (
    ${within(sql<boolean>`listing.member_count > plans.max_users`, sql`listing.member_count`)}
    union all
    ${within(
      sql<boolean>`listing.domain_count > plans.max_domains and listing.member_count <= plans.max_users`,
      sql`listing.domain_count`,
    )}) as listing`
}

/** The inner limit keeps PostgreSQL from reading the whole listing for the join. */
export const candidatesByName = (q: string, bound: number): RawBuilder<unknown> => sql`
  select listing.* from (
    select id from control.projects as projects where lower(projects.name) like ${containsPattern(q)} limit ${sql.lit(bound + 1)}
  ) as named cross join lateral (
    select * from control.project_listing where project_id = named.id limit 1) as listing`
