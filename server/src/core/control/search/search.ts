import type { Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { disableSeqScan, hasTrigram, scanMs, searchMs, withScanTimeout } from '../../shared/bounded-scan.ts'
import {
  type Candidate,
  describe,
  findByPrefix,
  findByTrigram,
  type ResultRow,
  scanNewest,
  sources,
} from './search.sql.ts'
import { kinds, type SearchResult } from './wire.ts'

// Scanning 1,000 of each of the five takes about 5 ms on two shared cores; the rest of the 30 ms is for trigrams.
export const searchBounds = { limit: 20, newest: 1_000, fewInTable: 200, scanMs, searchMs }

// In less, trigrams find nothing.
const leastMs = 3

/**
 * Search as you type across projects, domains, route addresses and users.
 *
 * Prefix matches are one range of an index. Substring matches have no bounded index range, so there are two bounded ways,
 * as in lists (docs/decisions/0009): a scan of the newest of each kind finds common matches, and a trigram search of a few
 * milliseconds finds rare ones. Matches that are neither may be missing; one more letter makes them rarer.
 */
export async function searchEverything(
  tx: ReadTx,
  q: string,
  bounds = searchBounds,
): Promise<Static<typeof SearchResult>[]> {
  const { limit } = bounds
  await disableSeqScan(tx)
  const starts = await findByPrefix(tx, q, limit)
  const ranked: Candidate[][] = [
    starts.filter(({ isExact }) => isExact),
    starts.filter(({ isExact }) => !isExact),
  ]
  if (best(ranked, limit).length < limit) ranked.push(await partsOf(tx, q, bounds))
  const found = best(ranked, limit)
  const rows = new Map((await describe(tx, found)).map((row) => [nameOf(row), row]))
  return found.flatMap((one) => rows.get(nameOf(one)) ?? []).map(resultView)
}

async function partsOf(tx: ReadTx, q: string, bounds: typeof searchBounds): Promise<Candidate[]> {
  const deadline = performance.now() + bounds.scanMs
  const newestMatches = await scanNewest(tx, q, bounds.limit, bounds.newest)
  if (!hasTrigram(q)) return newestMatches.flat()
  const parts: Candidate[] = []
  for (const [index, source] of sources.entries()) {
    const newest = newestMatches[index] ?? []
    // What one does not need is left to the others.
    const ms = Math.min(bounds.searchMs, (deadline - performance.now()) / (sources.length - index))
    const isWanted = newest.length < bounds.limit && ms >= leastMs
    const few = { limit: bounds.limit, bound: bounds.fewInTable }
    const all = isWanted ? await withScanTimeout(tx, ms, () => findByTrigram(tx, source, q, few)) : undefined
    parts.push(...(all ?? newest))
  }
  return parts
}

const nameOf = ({ kind, id }: Pick<Candidate, 'kind' | 'id'>): string => `${kind} ${id}`

/**
 * The best of what was found, given by how good it is. Of what is equally good, each kind has its turn, so that none
 * hides another.
 */
function best(ranked: Candidate[][], limit: number): Candidate[] {
  const seen = new Set<string>()
  return ranked
    .flatMap((equals) => {
      const fresh = equals
        .toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : a.id - b.id))
        .filter((one) => !seen.has(nameOf(one)) && seen.add(nameOf(one)))
      return inTurns(kinds.map((kind) => fresh.filter((one) => one.kind === kind)))
    })
    .slice(0, limit)
}

const inTurns = <T>(lists: T[][]): T[] =>
  Array.from({ length: Math.max(...lists.map(({ length }) => length)) }, (_, turn) =>
    lists.flatMap((list) => list.slice(turn, turn + 1)),
  ).flat()

const resultView = ({
  kind,
  id,
  project_id,
  project_name,
  label,
}: ResultRow): Static<typeof SearchResult> => ({
  type: kind,
  id,
  project_id,
  project_name,
  label,
})
