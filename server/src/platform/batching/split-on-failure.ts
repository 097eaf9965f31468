import { isDatabaseAway } from '../db/failures.ts'

export type ItemResult<Value> = { value: Value } | { error: unknown }

/**
 * Runs `work` for a group. A group that fails, timeouts included, is split in halves that are tried separately, until the
 * failing item is alone with its error: no tenant's item fails those of other tenants. Only a database that cannot be
 * reached, or a commit whose outcome is unknown, fails the group as a whole.
 */
export async function splitOnFailure<Item, Value>(
  group: readonly Item[],
  work: (group: readonly Item[]) => Promise<readonly Value[]>,
): Promise<ItemResult<Value>[]> {
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
