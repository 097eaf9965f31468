import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  checkpointPageSize,
  findStretches,
  isAhead,
  type Position,
  type RenderedRow,
  type RowQuery,
  readCheckpoints,
  readMoment,
  readPositions,
  readRow,
  readRows,
  readStrays,
  readStretches,
  rowPageSize,
  type Stretch,
} from './export.sql.ts'
import { type Line, lineOfDatabase } from './export-lines.ts'

/**
 * The audit as newline-delimited JSON: the rows in the order of (chain, seq), with their people; in a full
 * export then the checkpoints; last a line that counts both, by which a file that was cut is known.
 *
 * What an export holds is what was committed when it began, although every page is a transaction of its own
 * and none is held open: a row's transaction number tells whether it had committed at that moment. The moment
 * stands in the last line as `next`, and an export `after` it holds exactly what was committed since, however
 * long a transaction took.
 */
export interface ExportOptions {
  /** One project's chain; 0 for that of what belongs to none. */
  projectId?: number | undefined
  /** `next` of an earlier export: only what came since. */
  after?: string | undefined
}

export interface EndLine {
  type: 'end'
  rows: number
  checkpoints: number
  /** When it began. */
  at: string
  project: number | null
  after: string | null
  next: string
}

/** As PostgreSQL writes a pg_snapshot: xmin:xmax:the numbers between them that were still running. */
export function isMoment(text: string): boolean {
  const [, xmin, xmax, running] =
    /^([1-9]\d{0,17}):([1-9]\d{0,17}):((?:\d{1,18}(?:,\d{1,18})*)?)$/.exec(text) ?? []
  if (xmin === undefined || xmax === undefined || running === undefined) return false
  const numbers = [xmin, ...(running === '' ? [] : running.split(','))].map(BigInt)
  const isAscending = numbers.every((number, i) => i === 0 || number >= (numbers[i - 1] ?? 0n))
  return (
    isAscending && BigInt(xmin) <= BigInt(xmax) && numbers.slice(1).every((number) => number < BigInt(xmax))
  )
}

/** Each line with its line break. */
export async function* exportAudit(db: Db, options: ExportOptions = {}): AsyncGenerator<string> {
  const { projectId, after } = options
  if (after !== undefined) await requireUsable(db, after)
  const { at, snapshot, checkpoint } = await db.read(readMoment)
  let rows = 0
  let checkpoints = 0
  const lines =
    after === undefined
      ? auditLines(db, { projectId, snapshot })
      : linesBetween(db, { after, snapshot, chain: projectId })
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
  if (!isMoment(after)) {
    throw new PosternError('invalid_parameter', '"after" must be the "next" of an earlier export, unchanged.')
  }
  if (await db.read((tx) => isAhead(tx, after))) {
    throw new PosternError(
      'invalid_parameter',
      '"after" is not of this database cluster, whose transactions have not come so far. After a restore from a dump, ' +
        'begin again with a full export.',
    )
  }
}

const beforeAll: Position = { chain: String(-(2n ** 63n)), seq: String(-(2n ** 63n)) }

/** With a snapshot, the rows committed then; without one, whatever is there when a page is read. */
export async function* auditLines(
  db: Db,
  { projectId, snapshot }: { projectId?: number | undefined; snapshot?: string | undefined } = {},
): AsyncGenerator<Line> {
  const read = (after: Position) => readPage(db, after, { chain: projectId, snapshot })
  for (let next = read(beforeAll); ; ) {
    const page = await next
    const last = page.length < rowPageSize ? undefined : page.at(-1)
    if (last) {
      // Read ahead: whoever takes the lines works as long on a page as the database does.
      next = read(last)
      // Told where it is awaited; nobody may come for it.
      next.catch(() => {})
    }
    for (const row of page) yield lineOfRow(row)
    if (!last) return
  }
}

/** A row that the database cannot read, such as one on a bad disk, must not hide the others, and is to be named. */
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

/** What may be over in a moment, and says nothing about what was to be read. */
export const isOutage = (error: unknown): boolean =>
  error instanceof PosternError && error.code === 'unavailable'

function lineOfRow({ chain, seq, line }: RenderedRow): Line {
  if (line !== null) return lineOfDatabase(line)
  const value = { type: 'audit', chain: Number(chain), seq: Number(seq), unreadable: true }
  return { text: JSON.stringify(value), value, isExact: false }
}

async function* linesBetween(
  db: Db,
  { after, snapshot, chain }: { after: string; snapshot: string; chain: number | undefined },
): AsyncGenerator<Line> {
  const stretches = await db.read((tx) => findStretches(tx, { after, snapshot, chain }))
  for (const page of pagesOf(stretches)) {
    const rows = await db.read((tx) => readStretches(tx, page, { after, snapshot }))
    for (const row of rows) yield lineOfRow(row)
  }
}

/** Stretches cut and put together so that each page has about as many rows as it may. */
export function* pagesOf(stretches: readonly Stretch[]): Generator<Stretch[]> {
  let page: Stretch[] = []
  let room = BigInt(rowPageSize)
  for (const { chain, first, last } of stretches) {
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

/** Personal data that belongs to no row. There is none unless somebody put it there. */
export async function* strayLines(db: Db, projectId?: number): AsyncGenerator<Line> {
  for (let after = beforeAll.seq; ; ) {
    const { last, lines } = await db.read((tx) => readStrays(tx, after, projectId))
    for (const line of lines) yield lineOfDatabase(line)
    if (last === null) return
    after = last
  }
}
