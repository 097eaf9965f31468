import { isDatabaseAway } from '../db/failures.ts'

export type Settled<Value> = { value: Value } | { error: unknown }

/**
 * Runs `work` for a group. A group that fails, time-outs included, is split in halves that are tried apart, until the item
 * that makes it fail is alone with its error: no tenant's item costs other tenants theirs. Only a database that cannot be
 * reached, or a commit whose outcome is unknown, fails the group as a whole.
 */
export async function splitOnFailure<Item, Value>(
  group: readonly Item[],
  work: (group: readonly Item[]) => Promise<readonly Value[]>,
): Promise<Settled<Value>[]> {
  try {
    return (await work(group)).map((value) => ({ value }))
  } catch (error) {
    if (group.length <= 1 || isDatabaseAway(error)) return group.map(() => ({ error }))
    const middle = Math.ceil(group.length / 2)
    return [
      ...(await splitOnFailure(group.slice(0, middle), work)),
      ...(await splitOnFailure(group.slice(middle), work)),
    ]
  }
}
