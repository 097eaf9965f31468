import assert from 'node:assert/strict'
import type { ScanPosition, ScanResult } from '../../core/shared/bounded-scan.ts'

/**
 * Reads all pages of a search. Returns the ids and the number of pages, including pages with fewer rows than the limit.
 */
export async function searchToEnd<Row extends { id: number }>(
  search: (after: ScanPosition | undefined) => Promise<ScanResult<Row>>,
  limit: number,
): Promise<{ ids: number[]; pages: number; shortPages: number }> {
  const ids: number[] = []
  let [pages, shortPages] = [0, 0]
  for (let after: ScanPosition | undefined; ; ) {
    const { rows, next } = await search(after)
    pages++
    ids.push(...rows.map(({ id }) => id))
    assert.ok(rows.length <= limit, `${rows.length} rows on a page of ${limit}`)
    if (next === null) return { ids, pages, shortPages }
    if (rows.length < limit) shortPages++
    assert.notDeepEqual(next, after, 'the cursor did not advance')
    after = next
  }
}
