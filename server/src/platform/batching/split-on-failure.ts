import { isDatabaseAway } from '../db/failures.ts'

export type ItemResult<Value> = { value: Value } | { error: unknown }

/**
 * Runs `work` for a group. If it fails or times out, each half of the group is retried separately, until only the failing
 * item is left with its error. An item therefore cannot cause other tenants' items to fail. The whole group fails only if
 * the database is unreachable or the outcome of a commit is unknown.
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
