import type { ReadTx } from '../../../platform/db/db.ts'
import {
  continueScan,
  disableSeqScan,
  hasTrigram,
  type ScanResult,
  scanMs,
  searchMs,
  withScanTimeout,
} from '../../shared/bounded-scan.ts'
import {
  candidatesBeyondLimit,
  candidatesByName,
  candidatesByScore,
  type ProjectSearch,
  scan,
  scanCandidates,
} from './listing.sql.ts'
import type { ProjectRow } from './projects.sql.ts'

export type { ProjectSearch }

// Rows scanned. In an index that covers a list's filters, 10,000 rows take about 4 ms on two shared cores. Rows found by
// part of the name have to be fetched from the table. That takes ten times as long.
export const projectBounds = {
  firstScan: 2_000,
  nextScan: 10_000,
  fewInIndex: 10_000,
  fewInTable: 3_000,
  scanMs,
  searchMs,
}

/**
 * The first scan fills most pages. If it does not, matches are rare in this range, so each indexed filter is tried in
 * case it has a small set of candidates. If no filter has one, the list scans further and can return a page that is not
 * full.
 */
export async function searchProjects(
  tx: ReadTx,
  search: ProjectSearch,
  bounds = projectBounds,
): Promise<ScanResult<ProjectRow>> {
  const deadline = performance.now() + bounds.scanMs
  const first = await scan(tx, search, bounds.firstScan)
  if (first.next === null || first.rows.length === search.limit) return first
  await disableSeqScan(tx)
  for (const tryFilter of selectiveFilters(tx, search, bounds)) {
    if (performance.now() > deadline) break
    const found = await tryFilter()
    if (found) return found
  }
  return continueScan(first, search.limit, deadline, (after, limit) =>
    scan(tx, { ...search, after, limit }, bounds.nextScan),
  )
}

type Attempt = () => Promise<ScanResult<ProjectRow> | undefined>

function selectiveFilters(
  tx: ReadTx,
  search: ProjectSearch,
  { fewInIndex, fewInTable, searchMs }: typeof projectBounds,
): Attempt[] {
  const { q, minScore, maxScore, overLimit, sort } = search
  const byLimit: Attempt = () =>
    scanCandidates(tx, search, candidatesBeyondLimit(search, fewInIndex), fewInIndex)
  const byScore: Attempt = () => scanCandidates(tx, search, candidatesByScore(search), fewInIndex)
  const byName = (part: string): Attempt => {
    const few = candidatesByName(part, fewInTable)
    return () => withScanTimeout(tx, searchMs, () => scanCandidates(tx, search, few, fewInTable))
  }
  // With this sort order the scan already covers the range of scores.
  const hasScores = (minScore !== undefined || maxScore !== undefined) && !sort.endsWith('reputation_score')
  return [
    ...(overLimit === true ? [byLimit] : []),
    ...(hasScores ? [byScore] : []),
    ...(hasTrigram(q) ? [byName(q)] : []),
  ]
}
