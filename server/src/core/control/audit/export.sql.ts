import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { auditLine, checkpointLine, instant, personLine } from './json-lines.sql.ts'

/** A pg_snapshot, its time and the newest checkpoint in it. */
export interface Snapshot {
  at: string
  snapshot: string
  checkpoint: string
}

export async function readSnapshot(tx: ReadTx): Promise<Snapshot> {
  const { rows } = await sql<Snapshot>`
    select ${instant(sql`postern.now()`)} as at, pg_current_snapshot()::text as snapshot,
           coalesce((select max(id) from control.audit_checkpoints), 0)::text as checkpoint`.execute(tx)
  if (!rows[0]) throw new Error('the select returned no row')
  return rows[0]
}

/** Whether a snapshot is ahead of this database's transactions. If so, it was taken in another cluster. */
export async function isAhead(tx: ReadTx, snapshot: string): Promise<boolean> {
  const { rows } = await sql<{ isAhead: boolean }>`
    select pg_snapshot_xmax(${snapshot}::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as "isAhead"`.execute(
    tx,
  )
  return rows[0]?.isAhead ?? false
}

/** A position in the order of (chain, seq). Text, because a forged number can exceed JavaScript's range. */
export interface Position {
  chain: string
  seq: string
}

export interface RenderedRow extends Position {
  /** Null if the database cannot read the row. */
  line: string | null
}

/** Row filters: one chain, and visibility in a snapshot. */
export interface RowQuery {
  chain: number | undefined
  snapshot: string | undefined
}

export const rowPageSize = 1000

/**
 * Whether the row is visible in the snapshot. A row with a transaction id ahead of this database was restored from a dump of
 * another cluster and counts as visible.
 */
const wasCommitted = (snapshot: string): RawBuilder<boolean> => sql<boolean>`(
  pg_visible_in_snapshot(a.xid, ${snapshot}::pg_snapshot) or a.xid >= pg_snapshot_xmax(pg_current_snapshot()))`

const rowsAfter = (after: Position, { chain, snapshot }: RowQuery): RawBuilder<unknown> => sql`
  from control.audit a
 where (a.chain, a.seq) > (${after.chain}::bigint, ${after.seq}::bigint)
   and ${chain === undefined ? sql`true` : sql`a.chain = ${chain}`}
   and ${snapshot === undefined ? sql`true` : wasCommitted(snapshot)}
 order by a.chain, a.seq limit ${rowPageSize}`

export async function readRows(tx: ReadTx, after: Position, query: RowQuery): Promise<RenderedRow[]> {
  const { rows } = await sql<RenderedRow>`
    select a.chain::text as chain, a.seq::text as seq, ${auditLine} as line ${rowsAfter(after, query)}`.execute(
    tx,
  )
  return rows
}

/** The positions of the same rows. */
export async function readPositions(tx: ReadTx, after: Position, query: RowQuery): Promise<Position[]> {
  const { rows } = await sql<Position>`
    select a.chain::text as chain, a.seq::text as seq ${rowsAfter(after, query)}`.execute(tx)
  return rows
}

export async function readRow(tx: ReadTx, { chain, seq }: Position): Promise<string | null> {
  const { rows } = await sql<{ line: string }>`
    select ${auditLine} as line from control.audit a
     where a.chain = ${chain}::bigint and a.seq = ${seq}::bigint`.execute(tx)
  return rows[0]?.line ?? null
}

/** A range of one chain without gaps. */
export interface SeqRange {
  chain: bigint
  first: bigint
  last: bigint
}

const wasCommittedBetween = (after: string, snapshot: string): RawBuilder<boolean> => sql<boolean>`(
  a.xid >= pg_snapshot_xmin(${after}::pg_snapshot) and not pg_visible_in_snapshot(a.xid, ${after}::pg_snapshot)
  and pg_visible_in_snapshot(a.xid, ${snapshot}::pg_snapshot))`

/**
 * The ranges of rows committed between two snapshots. A chain has one range unless rows were removed or inserted. Ranges are
 * built from existing rows, so a forged number cannot create a range of a billion rows.
 */
export async function findRanges(
  tx: ReadTx,
  { after, snapshot, chain }: { after: string; snapshot: string; chain: number | undefined },
): Promise<SeqRange[]> {
  const { rows } = await sql<Record<keyof SeqRange, string>>`
    select chain::text as chain, min(seq)::text as first, max(seq)::text as last
      from (select a.chain, a.seq, a.seq::numeric - row_number() over (partition by a.chain order by a.seq) as range_start
              from control.audit a
             where ${wasCommittedBetween(after, snapshot)}
               and ${chain === undefined ? sql`true` : sql`a.chain = ${chain}`}) rows
     group by rows.chain, range_start order by rows.chain, min(seq)`.execute(tx)
  return rows.map((row) => ({ chain: BigInt(row.chain), first: BigInt(row.first), last: BigInt(row.last) }))
}

export async function readRanges(
  tx: ReadTx,
  ranges: SeqRange[],
  { after, snapshot }: { after: string; snapshot: string },
): Promise<RenderedRow[]> {
  const { rows } = await sql<RenderedRow>`
    select a.chain::text as chain, a.seq::text as seq, ${auditLine} as line
      from unnest(${ranges.map(({ chain }) => String(chain))}::bigint[],
                  ${ranges.map(({ first }) => String(first))}::bigint[],
                  ${ranges.map(({ last }) => String(last))}::bigint[]) as wanted (chain, first, last)
      join control.audit a on a.chain = wanted.chain and a.seq between wanted.first and wanted.last
     where ${wasCommittedBetween(after, snapshot)}
     order by a.chain, a.seq`.execute(tx)
  return rows
}

/** Small, because a checkpoint can have many heads. */
export const checkpointPageSize = 100

export async function readCheckpoints(
  tx: ReadTx,
  { after, upTo }: { after: string; upTo: string },
): Promise<{ id: string; line: string }[]> {
  const { rows } = await sql<{ id: string; line: string }>`
    select c.id::text as id, ${checkpointLine} as line from control.audit_checkpoints c
     where c.id > ${after}::bigint and c.id <= ${upTo}::bigint order by c.id limit ${checkpointPageSize}`.execute(
    tx,
  )
  return rows
}

const peoplePageSize = 20_000

/** Personal data without an audit row. Read in pages, because one query would exceed the statement timeout. */
export async function readStrays(
  tx: ReadTx,
  after: string,
  projectId: number | undefined,
): Promise<{ last: string | null; lines: string[] }> {
  const { rows } = await sql<{ last: string | null; lines: string[] | null }>`
    select max(p.audit_id)::text as last, array_agg(${personLine}) filter (where a.id is null) as lines
      from (select * from control.audit_people where audit_id > ${after}::bigint
               and ${projectId === undefined ? sql`true` : sql`coalesce(project_id, 0) = ${projectId}`}
             order by audit_id fetch first ${sql.lit(peoplePageSize)} rows with ties) p
      left join control.audit a on a.id = p.audit_id`.execute(tx)
  return { last: rows[0]?.last ?? null, lines: rows[0]?.lines ?? [] }
}
