/**
 * Bounded scans, for lists with many combinable filters. The response time does not depend on the number of rows.
 *
 * No index covers every combination of filters, and PostgreSQL would read all rows if a combination matched none. A list
 * therefore scans a bounded number of rows of an index, in index order. If the bound is reached before the page is full, the
 * list returns the position where it stopped, and the next page continues there. A page can be short or empty without being
 * the last. See docs/decisions/0009.
 */

import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../platform/db/db.ts'

export interface ScanPosition {
  /** The sort key; null if the list is sorted only by id. */
  key: string | number | null
  id: number
}

export interface ScanResult<Row> {
  rows: Row[]
  /** The last scanned position, or null if the list has no more rows. */
  next: ScanPosition | null
}

/** A list stops scanning after this time, well below the 100 ms limit for a page. */
export const scanMs = 30

/**
 * Continues where the first scan stopped, a bounded number of rows at a time, until the page is full, the list ends or the
 * deadline (a performance.now() value) passes. On a slow or busy machine, pages are shorter, not slower.
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

/**
 * `rows` has one extra row if there is another page. `stop` is the position where the scan reached its
 * bound.
 */
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
  /** Must not select `passes`, which is added here. */
  columns: RawBuilder<unknown>
  from: RawBuilder<unknown>
  /** One-to-one joins that are used only by `passes`. */
  joins?: RawBuilder<unknown>
  /** A range of one index. */
  within: RawBuilder<boolean>
  order: RawBuilder<unknown>
  /** The remaining filters. */
  passes: RawBuilder<boolean>
  /** The maximum number of scanned rows. */
  bound: number
  limit: number
}

/**
 * Two common table expressions: `found`, the rows of the page and up to one extra row, and `stop`, the last scanned row if
 * the bound was reached first. Both are in one statement, so they see the same rows. Counting up to the bound costs a tenth
 * of a scan and happens only if the page is not full. Computing row_number() for each row would make the scan four times
 * slower.
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

/** A LIKE pattern for lower-case text that contains `q`. Wildcards in `q` are escaped. */
export const containsPattern = (q: string): RawBuilder<string> =>
  sql<string>`lower(${`%${escapeLike(q)}%`}::text)`

/** A LIKE pattern for lower-case text that starts with `q`. */
export const prefixPattern = (q: string): RawBuilder<string> =>
  sql<string>`lower(${`${escapeLike(q)}%`}::text)`

const escapeLike = (q: string): string => q.replace(/[\\%_]/g, '\\$&')

/**
 * Whether a trigram index can find the text. pg_trgm indexes letters and digits, with a blank at the edges of a word, so the
 * text needs three consecutive characters, two at the end of a word or one at its start. For other texts PostgreSQL reads
 * the whole index, and no timeout stops it: searching 1,000,000 names for `---` took two seconds.
 */
export const hasTrigram = (q: string | undefined): q is string =>
  q !== undefined && /[\p{L}\d]{2}.|[^\p{L}\d][\p{L}\d]/su.test(q)

// The duration of a trigram search depends on the number of names that contain each trigram, so it is bounded only by a
// timeout. On two shared cores, 25 ms is enough to find a few thousand of 1,000,000 names.
export const searchMs = 25

/**
 * Applies to the rest of the transaction. Scans stop at their bound or at the end of an index range, but PostgreSQL's
 * estimates could favor reading and sorting a whole table.
 */
export async function disableSeqScan(tx: ReadTx): Promise<void> {
  await sql.raw('set local enable_seqscan = off').execute(tx)
}

/** The result of a trigram search, or undefined if it took too long. The list then continues row by row. */
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
