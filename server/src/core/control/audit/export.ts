/**
 * Exports the audit log as newline-delimited JSON: the rows in the order of (chain, seq) with their personal data, then, in
 * a full export, the checkpoints. The last line contains the number of rows and the number of checkpoints, so that a
 * truncated file can be detected.
 *
 * An export contains the rows that were committed when it started, although each page is read in its own transaction. The
 * transaction id of a row shows whether the row is visible in the snapshot taken at the start. The last line contains that
 * snapshot as `next`. An export `after` it contains exactly the rows committed since, regardless of how long their
 * transactions took.
 */
import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  checkpointPageSize,
  findRanges,
  isAhead,
  type Position,
  type RenderedRow,
  type RowQuery,
  readCheckpoints,
  readPositions,
  readRanges,
  readRow,
  readRows,
  readSnapshot,
  readStrays,
  rowPageSize,
  type SeqRange,
} from './export.sql.ts'
import { type Line, lineOfDatabase } from './export-lines.ts'

export interface ExportOptions {
  /** The chain of one project, or 0 for changes that do not belong to a project. */
  projectId?: number | undefined
  /** The `next` value of an earlier export. Limits the export to rows committed since then. */
  after?: string | undefined
}

export interface EndLine {
  type: 'end'
  rows: number
  checkpoints: number
  /** When the export started. */
  at: string
  project: number | null
  after: string | null
  next: string
}

/** PostgreSQL's text form of a pg_snapshot: xmin:xmax:ids in progress. */
export function isSnapshot(text: string): boolean {
  const [, xmin, xmax, running] =
    /^([1-9]\d{0,17}):([1-9]\d{0,17}):((?:\d{1,18}(?:,\d{1,18})*)?)$/.exec(text) ?? []
  if (xmin === undefined || xmax === undefined || running === undefined) return false
  const numbers = [xmin, ...(running === '' ? [] : running.split(','))].map(BigInt)
  const isAscending = numbers.every((number, i) => i === 0 || number >= (numbers[i - 1] ?? 0n))
  return (
    isAscending && BigInt(xmin) <= BigInt(xmax) && numbers.slice(1).every((number) => number < BigInt(xmax))
  )
}

/** Yields each line with its line break. */
export async function* exportAudit(db: Db, options: ExportOptions = {}): AsyncGenerator<string> {
  const { projectId, after } = options
  if (after !== undefined) await requireUsable(db, after)
  const { at, snapshot, checkpoint } = await db.read(readSnapshot)
  let rows = 0
  let checkpoints = 0
  const lines =
    after === undefined
      ? auditLines(db, { projectId, snapshot })
      : linesSince(db, { after, snapshot, chain: projectId })
  for await (const { text } of lines) {
    rows++
    yield `${text}\n`
  }
  if (after === undefined) {
    for await (const { text } of strayLines(db, projectId)) yield `${text}\n`
  }
  if (after === undefined && projectId === undefined) {
    for await (const { text } of checkpointLines(db, checkpoint)) {
      checkpoints++
      yield `${text}\n`
    }
  }
  const scope = { project: projectId ?? null, after: after ?? null }
  const end: EndLine = { type: 'end', rows, checkpoints, at, ...scope, next: snapshot }
  yield `${JSON.stringify(end)}\n`
}

async function requireUsable(db: Db, after: string): Promise<void> {
  if (!isSnapshot(after)) {
    throw new PosternError(
      'invalid_parameter',
      '"after" must be the unchanged value of "next" from an earlier export.',
    )
  }
  if (await db.read((tx) => isAhead(tx, after))) {
    throw new PosternError(
      'invalid_parameter',
      '"after" is from another database cluster. After a restore from a dump, start with a full export.',
    )
  }
}

const beforeAll: Position = { chain: String(-(2n ** 63n)), seq: String(-(2n ** 63n)) }

/** With a snapshot, only rows visible in it. Without one, the rows that exist when each page is read. */
export async function* auditLines(
  db: Db,
  { projectId, snapshot }: { projectId?: number | undefined; snapshot?: string | undefined } = {},
): AsyncGenerator<Line> {
  const read = (after: Position) => readPage(db, after, { chain: projectId, snapshot })
  for (let next = read(beforeAll); ; ) {
    const page = await next
    const last = page.length < rowPageSize ? undefined : page.at(-1)
    if (last) {
      // Read ahead: the caller takes as long to process a page as the database takes to read one.
      next = read(last)
      // An error is thrown when the page is awaited. The caller may stop before that.
      next.catch(() => {})
    }
    for (const row of page) yield lineOfRow(row)
    if (!last) return
  }
}

/**
 * A row that the database cannot read, for example because of a bad disk, must be reported without hiding the other rows.
 */
async function readPage(db: Db, after: Position, query: RowQuery): Promise<RenderedRow[]> {
  try {
    return await db.read((tx) => readRows(tx, after, query))
  } catch (error) {
    if (isOutage(error)) throw error
    const positions = await db.read((tx) => readPositions(tx, after, query))
    const rows: RenderedRow[] = []
    for (const position of positions) rows.push({ ...position, line: await readAlone(db, position) })
    return rows
  }
}

async function readAlone(db: Db, position: Position): Promise<string | null> {
  try {
    return await db.read((tx) => readRow(tx, position))
  } catch (error) {
    if (isOutage(error)) throw error
    return null
  }
}

/** A temporary failure, not a problem with the data. */
export const isOutage = (error: unknown): boolean =>
  error instanceof PosternError && error.code === 'unavailable'

function lineOfRow({ chain, seq, line }: RenderedRow): Line {
  if (line !== null) return lineOfDatabase(line)
  const value = { type: 'audit', chain: Number(chain), seq: Number(seq), unreadable: true }
  return { text: JSON.stringify(value), value, isExact: false }
}

async function* linesSince(
  db: Db,
  { after, snapshot, chain }: { after: string; snapshot: string; chain: number | undefined },
): AsyncGenerator<Line> {
  const ranges = await db.read((tx) => findRanges(tx, { after, snapshot, chain }))
  for (const page of pagesOf(ranges)) {
    const rows = await db.read((tx) => readRanges(tx, page, { after, snapshot }))
    for (const row of rows) yield lineOfRow(row)
  }
}

/** Splits and combines ranges into pages of at most `rowPageSize` rows. */
export function* pagesOf(ranges: readonly SeqRange[]): Generator<SeqRange[]> {
  let page: SeqRange[] = []
  let room = BigInt(rowPageSize)
  for (const { chain, first, last } of ranges) {
    for (let from = first; from <= last; ) {
      const to = from + room - 1n < last ? from + room - 1n : last
      page.push({ chain, first: from, last: to })
      room -= to - from + 1n
      from = to + 1n
      if (room > 0n) continue
      yield page
      page = []
      room = BigInt(rowPageSize)
    }
  }
  if (page.length > 0) yield page
}

export async function* checkpointLines(db: Db, upTo: string): AsyncGenerator<Line> {
  for (let after = beforeAll.seq; ; ) {
    const page = await db.read((tx) => readCheckpoints(tx, { after, upTo }))
    for (const { line } of page) yield lineOfDatabase(line)
    const last = page.at(-1)
    if (!last || page.length < checkpointPageSize) return
    after = last.id
  }
}

/** Personal data without an audit row. Only a forgery can create it. */
export async function* strayLines(db: Db, projectId?: number): AsyncGenerator<Line> {
  for (let after = beforeAll.seq; ; ) {
    const { last, lines } = await db.read((tx) => readStrays(tx, after, projectId))
    for (const line of lines) yield lineOfDatabase(line)
    if (last === null) return
    after = last
  }
}
