import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { containsPattern, prefixPattern } from '../../shared/bounded-scan.ts'
import type { kinds } from './wire.ts'

export type Kind = (typeof kinds)[number]

/** A searchable text in lower case. */
export interface Candidate {
  kind: Kind
  id: number
  text: string
}

export interface NearCandidate extends Candidate {
  isExact: boolean
}

interface Texts {
  from: RawBuilder<unknown>
  id: RawBuilder<number>
  text: RawBuilder<string>
}

export interface Source {
  kind: Kind
  /** In code point order, from an index on text and id. */
  inOrder: Texts
  /** From a trigram index. */
  byPart: Texts
}

const texts = (table: string, id: string, text: RawBuilder<string>): Texts => ({
  from: sql`${sql.table(table)} as one`,
  id: sql.ref(`one.${id}`),
  text,
})

/** For a table that has both indexes. */
const source = (kind: Kind, table: string, text: RawBuilder<string>): Source => ({
  kind,
  inOrder: texts(table, 'id', sql<string>`${text} collate "C"`),
  byPart: texts(table, 'id', text),
})

export const sources: Source[] = [
  {
    kind: 'project',
    inOrder: texts('control.project_listing', 'project_id', sql<string>`one.folded_name`),
    byPart: texts('control.projects', 'id', sql<string>`lower(one.name)`),
  },
  source('domain', 'control.domains', sql<string>`one.name`),
  source('route', 'control.routes', sql<string>`one.address`),
  source('user', 'control.users', sql<string>`one.email`),
  source('user', 'control.users', sql<string>`lower(one.name)`),
]

/** Prefix matches, up to `limit` per source. Exact matches and the project with this id are marked as exact. */
export async function findByPrefix(tx: ReadTx, q: string, limit: number): Promise<NearCandidate[]> {
  const starts = sources.map(
    ({ kind, inOrder: { from, id, text } }) => sql`
      (select ${kind}::text as kind, ${id} as id, ${text} as text, ${text} = lower(${q}) as "isExact"
         from ${from} where ${text} like ${prefixPattern(q)} order by ${text}, ${id} limit ${sql.lit(limit)})`,
  )
  const numbered = sql`
    (select 'project', project_id, folded_name, true from control.project_listing where project_id = ${q}::bigint)`
  const parts = /^[1-9]\d{0,15}$/.test(q) ? [...starts, numbered] : starts
  const { rows } = await sql<NearCandidate>`${sql.join(parts, sql` union all `)}`.execute(tx)
  return rows
}

/** Substring matches among the newest `bound` rows of each source. */
export async function scanNewest(
  tx: ReadTx,
  q: string,
  limit: number,
  bound: number,
): Promise<Candidate[][]> {
  const scans = sources.map(
    ({ kind, inOrder: { from, id, text } }, index) => sql`
      (select ${sql.lit(index)} as source, ${kind}::text as kind, id, text from (
         select ${id} as id, ${text} as text from ${from} order by ${id} desc limit ${sql.lit(bound)}) as newest
        where text like ${containsPattern(q)} limit ${sql.lit(limit)})`,
  )
  const { rows } = await sql<Candidate & { source: number }>`${sql.join(scans, sql` union all `)}`.execute(tx)
  return sources.map((_, index) => rows.filter((row) => row.source === index))
}

/**
 * Substring matches from the trigram index: the first `limit`, in text order, among the first `bound` matches. Only bitmap
 * scans use trigrams. PostgreSQL expects to reach the bound soon and would prefer to scan another index that contains the
 * text, so other index scans are disabled for the rest of the transaction or until its savepoint.
 */
export async function findByTrigram(
  tx: ReadTx,
  { kind, byPart: { from, id, text } }: Source,
  q: string,
  { limit, bound }: { limit: number; bound: number },
): Promise<Candidate[]> {
  await sql.raw('set local enable_indexscan = off; set local enable_indexonlyscan = off').execute(tx)
  const { rows } = await sql<Candidate>`
    select ${kind}::text as kind, id, text from (
      select ${id} as id, ${text} as text from ${from} where ${text} like ${containsPattern(q)} limit ${sql.lit(bound)}) as few
     order by text collate "C", id limit ${sql.lit(limit)}`.execute(tx)
  return rows
}

export interface ResultRow {
  kind: Kind
  id: number
  project_id: number | null
  project_name: string | null
  label: string
}

/** The displayed form, unordered. */
export async function describe(tx: ReadTx, found: Candidate[]): Promise<ResultRow[]> {
  const ids = (kind: Kind) =>
    sql`any(${found.filter((one) => one.kind === kind).map(({ id }) => id)}::bigint[])`
  const { rows } = await sql<ResultRow>`
    select 'project' as kind, id, id as project_id, name as project_name, name as label
      from control.projects where id = ${ids('project')}
    union all
    select 'domain', domains.id, projects.id, projects.name, domains.name
      from control.domains join control.projects on projects.id = domains.project_id where domains.id = ${ids('domain')}
    union all
    select 'route', routes.id, projects.id, projects.name, routes.address
      from control.routes join control.projects on projects.id = routes.project_id where routes.id = ${ids('route')}
    union all
    select 'user', id, null, null, case name when '' then email else name || ' <' || email || '>' end
      from control.users where id = ${ids('user')}`.execute(tx)
  return rows
}
