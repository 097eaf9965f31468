/**
 * A part of one chain with what is needed to verify it without the rest: consecutive rows, and a checkpoint that signs the
 * last of them. The hash of that row covers all earlier ones. The rows directly before and after the time range are included:
 * they show that no row of the range is missing.
 */
import type { ReadTx } from '../../../platform/db/db.ts'
import { findCheckpoint } from './checkpoints.sql.ts'
import { findCovering, findEnds, findTime, readExcerpt } from './excerpt.sql.ts'
import { lineOfDatabase } from './export-lines.ts'

export interface Excerpt {
  first: number
  /** 0 if the chain is empty. */
  last: number
  /** Null if no checkpoint covers any of the rows yet. */
  checkpointId: number | null
}

export async function findExcerpt(
  tx: ReadTx,
  chain: number,
  { from, to }: { from: Date; to: Date },
): Promise<Excerpt> {
  const { last: head, covered } = await findEnds(tx, chain)
  if (head === 0) return { first: 1, last: 0, checkpointId: null }
  const first = Math.max(1, (await firstAt(tx, chain, head, from)) - 1)
  const last = Math.min(head, await firstAt(tx, chain, head, to))
  const target = Math.min(last, covered)
  const covering = target < first ? undefined : await findCoveringCheckpoint(tx, chain, target)
  return { first, last: Math.max(last, covering?.seq ?? 0), checkpointId: covering?.id ?? null }
}

/** The first row at or after the time, or `head` + 1. Times increase along a chain. */
async function firstAt(tx: ReadTx, chain: number, head: number, time: Date): Promise<number> {
  let [low, high] = [1, head + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const at = await findTime(tx, chain, middle)
    if (at !== undefined && at >= time) high = middle
    else low = middle + 1
  }
  return low
}

/** A checkpoint is made within a minute. More than the clock of the database can plausibly be set back. */
const marginMs = 10 * 60_000
const maxPages = 100

async function findCoveringCheckpoint(
  tx: ReadTx,
  chain: number,
  seq: number,
): Promise<{ id: number; seq: number } | undefined> {
  const at = await findTime(tx, chain, seq)
  if (at === undefined) return undefined
  let after = { id: 0, at: new Date(at.getTime() - marginMs) }
  for (let page = 0; page < maxPages; page++) {
    const { found, last } = await findCovering(tx, { chain, seq }, after)
    if (found) return found
    if (!last) return undefined
    after = last
  }
  return undefined
}

/** Lines in the format of an export, without line breaks. */
export async function excerptLines(
  tx: ReadTx,
  range: { chain: number; after: number; upTo: number; limit: number },
): Promise<object[]> {
  return (await readExcerpt(tx, range)).map((line) => lineOfDatabase(line).value as object)
}

export async function checkpointLine(tx: ReadTx, id: number): Promise<object> {
  const line = await findCheckpoint(tx, id)
  if (line === undefined) throw new Error(`checkpoint ${id} does not exist`)
  return lineOfDatabase(line).value as object
}
