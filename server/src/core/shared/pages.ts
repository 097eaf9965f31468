/**
 * Lists: `limit` and an opaque `cursor` in, `{data, next_cursor}` out. Keyset pagination: the cursor is the position of the
 * last row returned, so every page costs the same. The cursor encodes `after:<id>`, or `after:<id>:<sort>:<key>` with the
 * row's sort key if the list is not in its default order.
 */

import Type, { type TSchema } from 'typebox'
import { PosternError } from '../../platform/errors.ts'
import type { ScanPosition, ScanResult } from './bounded-scan.ts'

export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Default: 50.' })),
  cursor: Type.Optional(
    Type.String({ maxLength: 200, description: '`next_cursor` from the previous page.' }),
  ),
}

const next = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const listWith = <Item extends TSchema, Next extends TSchema>(item: Item, next_cursor: Next) =>
  Type.Object({ data: Type.Array(item), next_cursor }, { additionalProperties: false })

export const listOf = <Item extends TSchema>(item: Item) => listWith(item, next('Null on the last page.'))

/** For a list that scans a bounded number of rows per page. */
export const searchOf = <Item extends TSchema>(item: Item) =>
  listWith(
    item,
    next(
      'Null on the last page only. A page may be short or empty when matches are rare; continue until this is null.',
    ),
  )

const defaultLimit = 50

interface Page {
  limit: number
  /** The id of the last row of the previous page. Undefined on the first page. */
  lastId: number | undefined
}

export function pageOf({ limit = defaultLimit, cursor }: { limit?: number; cursor?: string }): Page {
  if (cursor === undefined) return { limit, lastId: undefined }
  const { id, sort } = cursorParts(cursor)
  if (sort !== undefined) throw invalidCursor()
  return { limit, lastId: id }
}

/** Fetches one extra row to detect another page. */
export async function listed<Row extends { id: number }, Item>(
  { limit }: Page,
  fetch: (limit: number) => Promise<Row[]>,
  view: (row: Row) => Item,
): Promise<{ data: Item[]; next_cursor: string | null }> {
  const rows = await fetch(limit + 1)
  const data = rows.slice(0, limit)
  const last = rows.length > limit ? data.at(-1) : undefined
  return { data: data.map(view), next_cursor: last ? cursorOf({ id: last.id, key: null }) : null }
}

export interface Range {
  limit: number
  beforeId: number
}

/** A list sorted by id, newest first. `fetch` returns rows before an id. */
export function newestFirst<Row extends { id: number }, Item>(
  query: { limit?: number; cursor?: string },
  fetch: (range: Range) => Promise<Row[]>,
  view: (row: Row) => Item,
): Promise<{ data: Item[]; next_cursor: string | null }> {
  const page = pageOf(query)
  const beforeId = page.lastId ?? Number.MAX_SAFE_INTEGER
  return listed(page, (limit) => fetch({ limit, beforeId }), view)
}

/**
 * The sort orders of a list, each with a parser for the key in a cursor, if any. The first order is the default and must
 * sort by id.
 */
export type Sorts<Sort extends string> = Record<Sort, ReadKey | null>
type ReadKey = (text: string) => ScanPosition['key'] | undefined

export const textKey: ReadKey = (text) => (text.includes('\0') ? undefined : text)

export const integerKey =
  (most: number): ReadKey =>
  (text) =>
    /^(0|[1-9]\d{0,15})$/.test(text) && Number(text) <= most ? Number(text) : undefined

export const sortedPageQuery = <Sort extends string>(sorts: Sorts<Sort>, description: string) => ({
  limit: PageQuery.limit,
  cursor: Type.Optional(
    Type.String({
      // A name has up to a hundred characters of up to four bytes.
      maxLength: 1000,
      description:
        '`next_cursor` from the previous page, which must have been requested with the same `sort`.',
    }),
  ),
  sort: Type.Optional(Type.Enum(Object.keys(sorts) as Sort[], { type: 'string', description })),
})

interface SortedPage<Sort extends string> {
  limit: number
  sort: Sort
  /** Undefined on the first page. */
  after: ScanPosition | undefined
}

export function sortedPageOf<Sort extends string>(
  { limit = defaultLimit, cursor, sort }: { limit?: number; cursor?: string; sort?: Sort },
  sorts: Sorts<Sort>,
): SortedPage<Sort> {
  const defaultSort = defaultSortOf(sorts)
  const wanted = sort ?? defaultSort
  if (cursor === undefined) return { limit, sort: wanted, after: undefined }
  const parts = cursorParts(cursor)
  const given = (parts.sort ?? defaultSort) as Sort
  if (parts.sort === defaultSort || !Object.hasOwn(sorts, given)) throw invalidCursor()
  const readKey = sorts[given] ?? ((text) => (text === '' ? null : undefined))
  const key = readKey(parts.key ?? '')
  if (key === undefined) throw invalidCursor()
  if (given !== wanted) {
    throw new PosternError(
      'invalid_parameter',
      `"cursor" belongs to a list sorted by "${given}". Send the same "sort", or start without a cursor.`,
    )
  }
  return { limit, sort: wanted, after: { id: parts.id, key } }
}

/** Converts the result of a scan to a page. `sort` is set only if it is not the list's default. */
export const scanPage = <Row, Item>(
  { rows, next }: ScanResult<Row>,
  view: (row: Row) => Item,
  sort?: string,
): { data: Item[]; next_cursor: string | null } => ({
  data: rows.map(view),
  next_cursor: next && cursorOf(next, sort),
})

export const sortedScanPage = <Row, Item, Sort extends string>(
  found: ScanResult<Row>,
  view: (row: Row) => Item,
  { sort }: SortedPage<Sort>,
  sorts: Sorts<Sort>,
) => scanPage(found, view, sort === defaultSortOf(sorts) ? undefined : sort)

const defaultSortOf = <Sort extends string>(sorts: Sorts<Sort>): Sort => Object.keys(sorts)[0] as Sort

const cursorOf = ({ id, key }: ScanPosition, sort?: string): string =>
  Buffer.from(sort === undefined ? `after:${id}` : `after:${id}:${sort}:${key ?? ''}`).toString('base64url')

interface CursorParts {
  id: number
  sort: string | undefined
  key: string | undefined
}

function cursorParts(cursor: string): CursorParts {
  const text = Buffer.from(cursor, 'base64url').toString()
  const [, digits = '', sort, key] = /^after:(0|[1-9]\d{0,15})(?::(-?[a-z_]+):(.*))?$/s.exec(text) ?? []
  const id = Number(digits)
  // base64url decoding is lenient, but a valid cursor has only one encoding.
  if (digits === '' || !Number.isSafeInteger(id) || Buffer.from(text).toString('base64url') !== cursor) {
    throw invalidCursor()
  }
  return { id, sort, key }
}

/** For a list sorted by a text key, such as a UUID or an address. */
export function namedPageOf(
  { limit = defaultLimit, cursor }: { limit?: number; cursor?: string },
  form: RegExp,
): { limit: number; last: string | undefined } {
  if (cursor === undefined) return { limit, last: undefined }
  const text = Buffer.from(cursor, 'base64url').toString()
  const last = text.startsWith('after:') ? text.slice('after:'.length) : ''
  if (!form.test(last) || Buffer.from(text).toString('base64url') !== cursor) throw invalidCursor()
  return { limit, last }
}

export const namedPage = <Item>(data: Item[], next: string | null) => ({
  data,
  next_cursor: next === null ? null : Buffer.from(`after:${next}`).toString('base64url'),
})

const invalidCursor = (): PosternError =>
  new PosternError('invalid_parameter', '"cursor" is not a cursor for this list.')
