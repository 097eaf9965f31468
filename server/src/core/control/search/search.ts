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

// Scanning 1,000 rows of each of the five sources takes about 5 ms on two shared cores. The trigram search gets the rest
// of the 30 ms.
export const searchBounds = { limit: 20, newest: 1_000, fewInTable: 200, scanMs, searchMs }

// A trigram search needs at least this much time to find anything.
const leastMs = 3

/**
 * Search as you type across projects, domains, route addresses and users.
 *
 * Prefix matches are one range of an index. Substring matches have no bounded index range, so there are two bounded
 * searches, as in lists (docs/decisions/0009): a scan of the newest rows of each kind finds common matches, and a trigram
 * search of a few milliseconds finds rare ones. Other matches may be missing. With each additional letter, matches become
 * rarer and are more likely to be found.
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
    // Time that one source does not use is shared among the remaining sources.
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
 * The best candidates. The input must be in order of rank. Within a rank the kinds alternate, so that no kind crowds out
 * the others.
 */
function best(ranked: Candidate[][], limit: number): Candidate[] {
  const seen = new Set<string>()
  return ranked
    .flatMap((equals) => {
      const fresh = equals
        .toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : a.id - b.id))
        .filter((one) => !seen.has(nameOf(one)) && seen.add(nameOf(one)))
      return interleave(kinds.map((kind) => fresh.filter((one) => one.kind === kind)))
    })
    .slice(0, limit)
}

const interleave = <T>(lists: T[][]): T[] =>
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
