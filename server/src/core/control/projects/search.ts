import type { ReadTx } from '../../../platform/db/db.ts'
import {
  continueScan,
  hasTrigram,
  type ScanResult,
  scanMs,
  searchMs,
  stayOnIndexes,
  withScanTimeout,
} from '../../shared/bounded-scan.ts'
import { fewBeyondLimit, fewByName, fewByScore, look, lookAmong, type ProjectSearch } from './listing.sql.ts'
import type { ProjectRow } from './projects.sql.ts'

export type { ProjectSearch }

// Rows looked at. In an index that holds everything a list asks for, 10,000 take about 4 ms on two shared cores; rows
// found by a part of the name are fetched from the table, which takes ten times as long.
export const projectBounds = {
  firstLook: 2_000,
  furtherLook: 10_000,
  fewInIndex: 10_000,
  fewInTable: 3_000,
  scanMs,
  searchMs,
}

/**
 * A first look fills most pages. When it does not, what is asked for is rare, at least here, so the filters that can
 * name what they leave are asked in turn whether that is little. If it is not, the list looks further, and may give
 * a page that is not full.
 */
export async function searchProjects(
  tx: ReadTx,
  search: ProjectSearch,
  bounds = projectBounds,
): Promise<ScanResult<ProjectRow>> {
  const deadline = performance.now() + bounds.scanMs
  const first = await look(tx, search, bounds.firstLook)
  if (first.next === null || first.rows.length === search.limit) return first
  await stayOnIndexes(tx)
  for (const lookAmongFew of waysToFew(tx, search, bounds)) {
    if (performance.now() > deadline) break
    const found = await lookAmongFew()
    if (found) return found
  }
  return continueScan(first, search.limit, deadline, (after, limit) =>
    look(tx, { ...search, after, limit }, bounds.furtherLook),
  )
}

type Way = () => Promise<ScanResult<ProjectRow> | undefined>

function waysToFew(
  tx: ReadTx,
  search: ProjectSearch,
  { fewInIndex, fewInTable, searchMs }: typeof projectBounds,
): Way[] {
  const { q, minScore, maxScore, overLimit, sort } = search
  const byLimit: Way = () => lookAmong(tx, search, fewBeyondLimit(search, fewInIndex), fewInIndex)
  const byScore: Way = () => lookAmong(tx, search, fewByScore(search), fewInIndex)
  const byName = (part: string): Way => {
    const few = fewByName(part, fewInTable)
    return () => withScanTimeout(tx, searchMs, () => lookAmong(tx, search, few, fewInTable))
  }
  // Sorted by score, a stretch of scores is what is being looked through already.
  const hasScores = (minScore !== undefined || maxScore !== undefined) && !sort.endsWith('reputation_score')
  return [
    ...(overLimit === true ? [byLimit] : []),
    ...(hasScores ? [byScore] : []),
    ...(hasTrigram(q) ? [byName(q)] : []),
  ]
}
