import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'

/**
 * Lists that can be narrowed in many ways at once, and answer in the same time however many rows there are.
 *
 * There is no index for every combination of filters, and PostgreSQL, left to itself, walks through all rows when a
 * combination fits none. So a list *looks* at a bounded number of rows, in its order, in an index. When that bound is
 * reached before the page is full, the list says where it stopped, and the next page goes on from there: a page may
 * be short, or empty, and yet not be the last. docs/decisions/0009 tells the rest.
 */
export interface ScanPosition {
  /** What the list is sorted by; null where that is the id alone. */
  key: string | number | null
  id: number
}

export interface ScanResult<Row> {
  rows: Row[]
  /** The last place looked at: there may be more behind it. Null at the end of the list. */
  next: ScanPosition | null
}

/** A list gives up looking after this time: far enough below the 100 ms that a page may take. */
export const scanMs = 30

/**
 * Looks on from where a first look stopped, a bounded number of rows at a time, until the page is full, the list at its
 * end or the time is up (`deadline` is one of performance.now()). On a slow or busy machine pages are shorter, not later.
 */
export async function continueScan<Row>(
  first: ScanResult<Row>,
  limit: number,
  deadline: number,
  look: (after: ScanPosition, limit: number) => Promise<ScanResult<Row>>,
): Promise<ScanResult<Row>> {
  let { rows, next } = first
  while (next !== null && rows.length < limit && performance.now() < deadline) {
    const more = await look(next, limit - rows.length)
    rows = [...rows, ...more.rows]
    next = more.next
  }
  return { rows, next }
}

/** Of up to one row more than fits, which tells that there is another page; `stop` is where the bound was reached. */
export function scanResultOf<Row>(
  rows: Row[],
  limit: number,
  placeOf: (row: Row) => ScanPosition,
  stop: ScanPosition | null,
): ScanResult<Row> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { rows: shown, next: rows.length > limit && last !== undefined ? placeOf(last) : stop }
}

export interface Walk {
  /** Beside `passes`, which is made here. */
  columns: RawBuilder<unknown>
  from: RawBuilder<unknown>
  /** What is joined, a row to a row, for `passes` alone. */
  beside?: RawBuilder<unknown>
  /** What one stretch of one index holds. */
  within: RawBuilder<boolean>
  order: RawBuilder<unknown>
  /** Whatever else a row must be. */
  passes: RawBuilder<boolean>
  /** How many rows are looked at. */
  bound: number
  limit: number
}

/**
 * Two parts of a WITH: `found`, up to one row more than fits, and `stop`, the last row looked at if the bound was
 * reached before that. One statement, so that both see the same rows. Counting on to the bound costs a tenth of
 * looking, and happens only when the page is not full; a row_number() beside each row made looking four times as long.
 */
export const walk = (walked: Walk): RawBuilder<unknown> => {
  const { columns, from, beside = sql``, within, order, passes, bound, limit } = walked
  return sql`
  found as materialized (
    select * from (
      select ${columns}, ${passes} as passes from ${from} ${beside} where ${within} order by ${order}
       limit ${sql.lit(bound)}) as looked
     where passes limit ${sql.lit(limit + 1)}
  ), stop as (
    select ${columns} from ${from} where ${within} and (select count(*) from found) <= ${sql.lit(limit)}
     order by ${order} offset ${sql.lit(bound - 1)} limit 1
  )`
}

export const allOf = (conditions: RawBuilder<boolean>[]): RawBuilder<boolean> =>
  conditions.length === 0 ? sql<boolean>`true` : sql<boolean>`(${sql.join(conditions, sql` and `)})`

/** For LIKE, on text in small letters: a part of it, every character meaning itself. */
export const partOf = (q: string): RawBuilder<string> => sql<string>`lower(${`%${literally(q)}%`}::text)`

/** The same: how it begins. */
export const startOf = (q: string): RawBuilder<string> => sql<string>`lower(${`${literally(q)}%`}::text)`

const literally = (q: string): string => q.replace(/[\\%_]/g, '\\$&')

/**
 * Whether a trigram index can look for it. pg_trgm takes letters and digits, and the edge of a word for a blank: three in a
 * row, two at the end of a word or one at its beginning. Asked for anything else it reads the whole index, and no time-out
 * stops it: `---` among 1,000,000 names took two seconds.
 */
export const hasTrigram = (q: string | undefined): q is string =>
  q !== undefined && /[\p{L}\d]{2}.|[^\p{L}\d][\p{L}\d]/su.test(q)

// An index search for a part of a name takes as long as there are names with each three letters of it, and nothing
// but time bounds it. In 25 ms some thousands of 1,000,000 are found on two shared cores.
export const searchMs = 25

/**
 * For the rest of the transaction. A list that looks further than a first time will stop at its bound or at the end of
 * a stretch; PostgreSQL, by what it expects to find, might rather read a whole table and sort it.
 */
export async function stayOnIndexes(tx: ReadTx): Promise<void> {
  await sql.raw('set local enable_seqscan = off').execute(tx)
}

/** What `work` found by a trigram index; undefined when that took too long, and the list goes on looking row by row. */
export async function withScanTimeout<T>(
  tx: ReadTx,
  ms: number,
  work: () => Promise<T>,
): Promise<T | undefined> {
  await sql.raw(`savepoint withScanTimeout; set local statement_timeout = ${Math.ceil(ms)}`).execute(tx)
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: unknown }).code === queryCanceled) return undefined
    throw error
  } finally {
    // Sets the time-out back, too.
    await sql.raw('rollback to savepoint withScanTimeout').execute(tx)
  }
}

const queryCanceled = '57014'
