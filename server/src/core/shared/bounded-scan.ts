/**
 * Bounded scans: lists with many combinable filters whose response time does not depend on the number of rows.
 *
 * No index serves every combination of filters, and PostgreSQL would read all rows when a combination matches none. So a
 * list scans a bounded number of rows, in its order, in an index. If the bound is reached before the page is full, the
 * list returns the position where it stopped, and the next page continues there: a page may be short or empty without
 * being the last. See docs/decisions/0009.
 */

import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'

export interface ScanPosition {
  /** The sort key; null if the list is sorted by id alone. */
  key: string | number | null
  id: number
}

export interface ScanResult<Row> {
  rows: Row[]
  /** The last position scanned: there may be more rows after it. Null at the end of the list. */
  next: ScanPosition | null
}

/** A list stops scanning after this time: far enough below the 100 ms that a page may take. */
export const scanMs = 30

/**
 * Continues where a first scan stopped, a bounded number of rows at a time, until the page is full, the list ends or the
 * deadline (of performance.now()) passes. On a slow or busy machine pages are shorter, not later.
 */
export async function continueScan<Row>(
  first: ScanResult<Row>,
  limit: number,
  deadline: number,
  scan: (after: ScanPosition, limit: number) => Promise<ScanResult<Row>>,
): Promise<ScanResult<Row>> {
  let { rows, next } = first
  while (next !== null && rows.length < limit && performance.now() < deadline) {
    const more = await scan(next, limit - rows.length)
    rows = [...rows, ...more.rows]
    next = more.next
  }
  return { rows, next }
}

/** From up to one row more than fits, which shows that there is another page; `stop` is where the bound was reached. */
export function scanResultOf<Row>(
  rows: Row[],
  limit: number,
  positionOf: (row: Row) => ScanPosition,
  stop: ScanPosition | null,
): ScanResult<Row> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { rows: shown, next: rows.length > limit && last !== undefined ? positionOf(last) : stop }
}

export interface BoundedScan {
  /** Besides `passes`, which is added here. */
  columns: RawBuilder<unknown>
  from: RawBuilder<unknown>
  /** Joined one to one, for `passes` only. */
  joins?: RawBuilder<unknown>
  /** One range of one index. */
  within: RawBuilder<boolean>
  order: RawBuilder<unknown>
  /** The remaining filters. */
  passes: RawBuilder<boolean>
  /** How many rows are scanned. */
  bound: number
  limit: number
}

/**
 * Two parts of a WITH: `found`, up to one row more than fits, and `stop`, the last row scanned if the bound was reached
 * before that. One statement, so that both see the same rows. Counting up to the bound costs a tenth of a scan, and
 * happens only if the page is not full; a row_number() per row made the scan four times slower.
 */
export const boundedScan = (scan: BoundedScan): RawBuilder<unknown> => {
  const { columns, from, joins = sql``, within, order, passes, bound, limit } = scan
  return sql`
  found as materialized (
    select * from (
      select ${columns}, ${passes} as passes from ${from} ${joins} where ${within} order by ${order}
       limit ${sql.lit(bound)}) as scanned
     where passes limit ${sql.lit(limit + 1)}
  ), stop as (
    select ${columns} from ${from} where ${within} and (select count(*) from found) <= ${sql.lit(limit)}
     order by ${order} offset ${sql.lit(bound - 1)} limit 1
  )`
}

export const allOf = (conditions: RawBuilder<boolean>[]): RawBuilder<boolean> =>
  conditions.length === 0 ? sql<boolean>`true` : sql<boolean>`(${sql.join(conditions, sql` and `)})`

/** A LIKE pattern for text in lower case that contains `q`, with every character taken escapeLike. */
export const containsPattern = (q: string): RawBuilder<string> =>
  sql<string>`lower(${`%${escapeLike(q)}%`}::text)`

/** A LIKE pattern for text in lower case that starts with `q`. */
export const prefixPattern = (q: string): RawBuilder<string> =>
  sql<string>`lower(${`${escapeLike(q)}%`}::text)`

const escapeLike = (q: string): string => q.replace(/[\\%_]/g, '\\$&')

/**
 * Whether a trigram index can find it. pg_trgm indexes letters and digits, with a blank at the edges of a word: three in a
 * row, two at the end of a word or one at its start. For anything else it reads the whole index, and no timeout stops it:
 * `---` among 1,000,000 names took two seconds.
 */
export const hasTrigram = (q: string | undefined): q is string =>
  q !== undefined && /[\p{L}\d]{2}.|[^\p{L}\d][\p{L}\d]/su.test(q)

// An index search for a part of a name takes as long as there are names with each three letters of it, and nothing
// but time bounds it. In 25 ms some thousands of 1,000,000 are found on two shared cores.
export const searchMs = 25

/**
 * For the rest of the transaction. A scan after the first one stops at its bound or at the end of an index range;
 * PostgreSQL's estimates might rather choose to read a whole table and sort it.
 */
export async function disableSeqScan(tx: ReadTx): Promise<void> {
  await sql.raw('set local enable_seqscan = off').execute(tx)
}

/** What `work` found by a trigram index; undefined if it took too long, and the list continues row by row. */
export async function withScanTimeout<T>(
  tx: ReadTx,
  ms: number,
  work: () => Promise<T>,
): Promise<T | undefined> {
  await sql.raw(`savepoint scan_timeout; set local statement_timeout = ${Math.ceil(ms)}`).execute(tx)
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: unknown }).code === queryCanceled) return undefined
    throw error
  } finally {
    // Also resets the timeout.
    await sql.raw('rollback to savepoint scan_timeout').execute(tx)
  }
}

const queryCanceled = '57014'
