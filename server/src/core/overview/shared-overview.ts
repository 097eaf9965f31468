import type { Static } from 'typebox'
import { Batcher } from '../../platform/batching/batcher.ts'
import type { Db } from '../../platform/db/db.ts'
import { type OverviewDeps, readOverview } from './overview.ts'
import type { Overview } from './wire.ts'

/**
 * One overview for all administrators who request it at the same time. Every console requests it every few seconds. If a
 * database is slow, their requests would otherwise hold all connections, with which mail is also accepted. A process
 * reads one overview at a time, and each begins after it was requested.
 */
type Read = { overview: Static<typeof Overview> } | { failure: unknown }

const readers = new WeakMap<Db, Batcher<OverviewDeps, Read>>()

export async function sharedOverview(deps: OverviewDeps): Promise<Static<typeof Overview>> {
  const reader = readers.get(deps.db) ?? new Batcher(readFor, { atMost: Number.POSITIVE_INFINITY })
  readers.set(deps.db, reader)
  const read = await reader.submit(deps)
  if ('failure' in read) throw read.failure
  return read.overview
}

/** A failure is a result: a group that fails would be split, and read again for each of its members. */
async function readFor(group: readonly OverviewDeps[]): Promise<Read[]> {
  const [deps] = group
  if (!deps) return []
  const read = await readOverview(deps).then(
    (overview) => ({ overview }),
    (failure: unknown) => ({ failure }),
  )
  return group.map(() => read)
}
