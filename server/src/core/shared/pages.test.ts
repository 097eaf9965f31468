import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { integerKey, pageOf, type Sorts, sortedPageOf, sortedScanPage, textKey } from './pages.ts'

type Sort = '-id' | 'id' | 'name' | 'score'
const sorts: Sorts<Sort> = { '-id': null, id: null, name: textKey, score: integerKey(100) }

const cursorAt = (id: number, key: string | number | null, sort: Sort): string => {
  const page = { limit: 50, sort, after: undefined }
  const { next_cursor } = sortedScanPage({ rows: [], next: { id, key } }, String, page, sorts)
  return next_cursor ?? assert.fail('no cursor')
}
const encoded = (text: string) => Buffer.from(text).toString('base64url')
const decoded = (cursor: string) => Buffer.from(cursor, 'base64url').toString()
const invalid = { code: 'invalid_parameter' }

describe('the cursor of a sorted list', () => {
  test('decodes to its position', () => {
    for (const [id, key, sort] of [
      [7, null, '-id'],
      [0, null, 'id'],
      [7, 'acme', 'name'],
      [7, '', 'name'],
      [7, 'a:b:name:c\n"\u{1F4A9}', 'name'],
      [Number.MAX_SAFE_INTEGER, 100, 'score'],
      [7, 0, 'score'],
    ] as const) {
      const page = sortedPageOf({ cursor: cursorAt(id, key, sort), sort, limit: 3 }, sorts)
      assert.deepEqual(page, { limit: 3, sort, after: { id, key } })
    }
  })

  test('has the common format in the default order', () => {
    const cursor = cursorAt(7, null, '-id')
    assert.equal(decoded(cursor), 'after:7')
    assert.deepEqual(pageOf({ cursor }), { limit: 50, lastId: 7 })
    assert.deepEqual(sortedPageOf({ cursor }, sorts).after, { id: 7, key: null })
  })

  test('is rejected with a different sort order, and the error names the order of the cursor', () => {
    for (const [made, asked] of [
      ['name', 'score'],
      ['name', undefined],
      ['-id', 'id'],
      ['id', undefined],
      ['score', 'name'],
    ] as const) {
      const cursor = cursorAt(7, made === 'name' ? 'x' : made === 'score' ? 1 : null, made)
      assert.throws(
        () => sortedPageOf({ cursor, ...(asked ? { sort: asked } : {}) }, sorts),
        { ...invalid, message: new RegExp(`sorted by "${made}"`) },
        `${made} under ${asked}`,
      )
    }
    assert.throws(() => pageOf({ cursor: cursorAt(7, 'x', 'name') }), invalid)
  })

  test('is rejected if no list issued it', () => {
    for (const [text, sort] of [
      ['after:7:-id:', '-id'],
      ['after:7:-id', '-id'],
      ['after:7:id:3', 'id'],
      ['after:7:id', 'id'],
      ['after:7:score:', 'score'],
      ['after:7:score:101', 'score'],
      ['after:7:score:-1', 'score'],
      ['after:7:score:01', 'score'],
      ['after:7:score:1e1', 'score'],
      ['after:7:name', 'name'],
      ['after:7:name:a\0b', 'name'],
      ['after:9007199254740992:name:a', 'name'],
      ['after:07:name:a', 'name'],
      ['after::name:a', 'name'],
      ['after:7:toString:a', 'name'],
      ['after:7:__proto__:a', 'name'],
      ['after:7:other:a', 'name'],
    ] as const) {
      assert.throws(() => sortedPageOf({ cursor: encoded(text), sort }, sorts), invalid, text)
    }
    const halfCharacter = Buffer.from([...Buffer.from('after:7:name:'), 0xc3]).toString('base64url')
    assert.throws(() => sortedPageOf({ cursor: halfCharacter, sort: 'name' }, sorts), invalid)
    assert.throws(
      () => sortedPageOf({ cursor: `${cursorAt(7, 'a', 'name')}=`, sort: 'name' }, sorts),
      invalid,
    )
  })
})
