import type { Db } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import {
  checkpointPageSize,
  findStretches,
  isAhead,
  type Position,
  readCheckpoints,
  readMoment,
  readRows,
  readStrays,
  readStretches,
  rowPageSize,
  type Stretch,
} from './export.sql.ts'
import { type Line, lineOfDatabase } from './lines.ts'

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
  const read = (after: Position) => db.read((tx) => readRows(tx, { after, chain: projectId, snapshot }))
  for (let next = read(beforeAll); ; ) {
    const page = await next
    const last = page.length < rowPageSize ? undefined : page.at(-1)
    if (last) {
      // Read ahead: whoever takes the lines works as long on a page as the database does.
      next = read(last)
      // Told where it is awaited; nobody may come for it.
      next.catch(() => {})
    }
    for (const { line } of page) yield lineOfDatabase(line)
    if (!last) return
  }
}

async function* linesBetween(
  db: Db,
  { after, snapshot, chain }: { after: string; snapshot: string; chain: number | undefined },
): AsyncGenerator<Line> {
  const stretches = await db.read((tx) => findStretches(tx, { after, snapshot, chain }))
  for (const page of pagesOf(stretches)) {
    const rows = await db.read((tx) => readStretches(tx, page, { after, snapshot }))
    for (const { line } of rows) yield lineOfDatabase(line)
  }
}

/** Stretches cut and put together so that each page has about as many rows as it may. */
export function* pagesOf(stretches: readonly Stretch[]): Generator<Stretch[]> {
  let page: Stretch[] = []
  let room = rowPageSize
  for (const { chain, first, last } of stretches) {
    for (let from = first; from <= last; ) {
      const to = Math.min(last, from + room - 1)
      page.push({ chain, first: from, last: to })
      room -= to - from + 1
      from = to + 1
      if (room > 0) continue
      yield page
      page = []
      room = rowPageSize
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
