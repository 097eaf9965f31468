import Type, { type TSchema } from 'typebox'
import { PosternError } from '../platform/errors.ts'

/**
 * Lists: `limit` and an opaque `cursor` in, `{data, next_cursor}` out. The cursor is the id of the last row seen,
 * so that a page costs the same however far down it is.
 */
export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: '50 unless told otherwise.' })),
  cursor: Type.Optional(Type.String({ maxLength: 200, description: '`next_cursor` of the page before.' })),
}

export const listOf = <Item extends TSchema>(item: Item) =>
  Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Type.Union([Type.String(), Type.Null()], { description: 'Null on the last page.' }),
    },
    { additionalProperties: false },
  )

const defaultLimit = 50

interface Page {
  limit: number
  /** Of the last row of the page before; undefined on the first. */
  lastId: number | undefined
}

export function pageOf({ limit = defaultLimit, cursor }: { limit?: number; cursor?: string }): Page {
  return { limit, lastId: cursor === undefined ? undefined : idIn(cursor) }
}

/** One row more than fits tells whether there is another page. */
export async function listed<Row extends { id: number }, Item>(
  { limit }: Page,
  fetch: (limit: number) => Promise<Row[]>,
  view: (row: Row) => Item,
): Promise<{ data: Item[]; next_cursor: string | null }> {
  const rows = await fetch(limit + 1)
  const data = rows.slice(0, limit)
  const last = rows.length > limit ? data.at(-1) : undefined
  return { data: data.map(view), next_cursor: last ? cursorOf(last.id) : null }
}

const cursorOf = (id: number): string => Buffer.from(`after:${id}`).toString('base64url')

function idIn(cursor: string): number {
  const [, id] = /^after:(0|[1-9]\d{0,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id === undefined || !Number.isSafeInteger(Number(id)) || cursorOf(Number(id)) !== cursor) {
    throw new PosternError('invalid_parameter', '"cursor" is not one that this list gave out.')
  }
  return Number(id)
}
