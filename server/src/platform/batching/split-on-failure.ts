import { isDatabaseAway } from '../db/failures.ts'

export type ItemResult<Value> = { value: Value } | { error: unknown }

/** Items that failed in every group are retried separately, this many at the same time. */
const singlesAtOnce = 4

/**
 * Runs `work` for a group. If it fails or times out, each half of the group is retried separately, until only the failing
 * item is left with its error. An item therefore cannot cause other tenants' items to fail. Single items are retried last
 * and concurrently, so they do not wait for one that times out again. The whole group fails only if the database is
 * unreachable or the outcome of a commit is unknown.
 */
export async function splitOnFailure<Item, Value>(
  group: readonly Item[],
  work: (group: readonly Item[]) => Promise<readonly Value[]>,
): Promise<ItemResult<Value>[]> {
  const results: ItemResult<Value>[] = []
  const parts: Part<Item>[] = [{ items: group, first: 0 }]
  const singles: Part<Item>[] = []
  const run = async ({ items, first }: Part<Item>): Promise<void> => {
    try {
      for (const [index, value] of (await work(items)).entries()) results[first + index] = { value }
    } catch (error) {
      if (items.length <= 1 || isDatabaseAway(error)) {
        for (const index of items.keys()) results[first + index] = { error }
        return
      }
      const middle = Math.ceil(items.length / 2)
      for (const half of [
        { items: items.slice(0, middle), first },
        { items: items.slice(middle), first: first + middle },
      ]) {
        if (half.items.length > 1) parts.push(half)
        else singles.push(half)
      }
    }
  }
  // Grows while it is read.
  for (const part of parts) await run(part)
  const runSingles = async (): Promise<void> => {
    for (let next = singles.shift(); next; next = singles.shift()) await run(next)
  }
  await Promise.all(Array.from({ length: singlesAtOnce }, runSingles))
  return results
}

interface Part<Item> {
  items: readonly Item[]
  /** The index of the first item in the group. */
  first: number
}
