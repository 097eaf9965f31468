import assert from 'node:assert/strict'
import type { Answer, Client } from '../harness/client.ts'
import { assertProblem } from './problem.ts'

/** Assertions for every list: it returns each row once for every page size, and no rows for an invalid cursor. */
interface ListedRow {
  id: number
}

/** Reads all pages of a list; calls `beforeNextPage` between pages. */
export async function readAllPages<Row extends ListedRow>(
  admin: Client,
  path: string,
  query: Record<string, string> = {},
  beforeNextPage: () => Promise<unknown> = async () => {},
): Promise<Row[]> {
  const rows: Row[] = []
  const size = Number(query['limit'] ?? 50)
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { data, next_cursor }: { data: Row[]; next_cursor: string | null } = await readPage(admin, path, {
      ...query,
      ...(cursor === '' ? {} : { cursor }),
    })
    rows.push(...data)
    if (next_cursor === null) assert.ok(data.length <= size)
    else assert.equal(data.length, size, 'a page that is not the last one is full')
    cursor = next_cursor
    if (cursor !== null) await beforeNextPage()
  }
  return rows
}

const readPage = async (admin: Client, path: string, query: Record<string, string>) => {
  const answer = await admin.get(`${path}?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.body), ['data', 'next_cursor'])
  return answer.body
}

// The default, the largest and the smallest size, some that divide 250 and some that do not.
const pageSizes = [undefined, '200', '199', '125', '50', '7', '1']
const rowsAdded = 5

/** `ids` contains the ids of all rows in list order; `addRow` adds another row. */
export async function assertEachRowOnce(
  admin: Client,
  path: string,
  ids: readonly number[],
  addRow: () => Promise<unknown>,
  filter: Record<string, string> = {},
): Promise<void> {
  assert.ok(ids.length >= 250)
  const isNewestFirst = Number(ids[0]) > Number(ids.at(-1))
  for (const limit of pageSizes) {
    const query = { ...filter, ...(limit === undefined ? {} : { limit }) }
    const before = (await readAllPages(admin, path, { ...filter, limit: '200' })).map(({ id }) => id)
    let added = 0
    const addSome = async () => added++ < rowsAdded && addRow()
    const seen = (await readAllPages(admin, path, query, addSome)).map(({ id }) => id)
    assert.ok(added > 0, 'the list has more than one page')
    assert.equal(new Set(seen).size, seen.length, `with limit ${limit} a row is returned twice`)
    // Rows added in the meantime appear before the first page if the list is newest first, otherwise at the end.
    assert.deepEqual(seen.slice(0, before.length), before, `with limit ${limit}`)
    if (isNewestFirst) assert.equal(seen.length, before.length)
    assert.deepEqual(
      before.filter((id) => ids.includes(id)),
      ids,
    )
  }
}

/** Asserts that malformed cursors and limits are rejected. */
export async function assertStrictPaging(admin: Client, path: string, lastId: number): Promise<void> {
  const encoded = (text: string) => Buffer.from(text).toString('base64url')
  const genuine = encoded(`after:${lastId}`)
  const cursors = [
    '',
    'x',
    '!!!!',
    '0',
    String(lastId),
    `after:${lastId}`,
    `${genuine}=`,
    `${genuine}A`,
    ` ${genuine}`,
    `${genuine}\n`,
    'x'.repeat(201),
    'x'.repeat(200),
    '\u{1F4A9}',
    ...[
      '',
      'after:',
      'after:-1',
      'after:01',
      'after:1e3',
      'after:1.0',
      'after: 1',
      'after:0x1',
      'before:1',
    ].map(encoded),
    ...[
      'after:9007199254740992',
      'after:9223372036854775808',
      "after:1' or 1=1 --",
      'after:1\0',
      'AFTER:1',
    ].map(encoded),
  ]
  for (const cursor of cursors) await assertInvalid(admin, path, { cursor })
  for (const limit of [
    '',
    '0',
    '201',
    '-1',
    '1.5',
    '1e1',
    '+5',
    '05',
    ' 5',
    'all',
    '9007199254740993',
    'null',
  ]) {
    await assertInvalid(admin, path, { limit })
  }
  assertProblem(await admin.get(`${path}?cursor=${genuine}&cursor=${genuine}`), 400, 'invalid_parameter')
  assertProblem(await admin.get(`${path}?limit=1&limit=2`), 400, 'invalid_parameter')
  assertProblem(await admin.get(`${path}?cursor=%00`), 400, 'invalid_parameter')
  await assertInvalid(admin, path, { offset: '10' })
}

async function assertInvalid(admin: Client, path: string, query: Record<string, string>): Promise<void> {
  const answer: Answer = await admin.get(`${path}?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 400, `${JSON.stringify(query)}: ${answer.text.slice(0, 200)}`)
  assertProblem(answer, 400, 'invalid_parameter')
}
