import type { Cells } from '../../../platform/db/cells.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import { enforceFirings } from './enforcement.ts'
import { evaluatePolicies } from './evaluation.ts'

export interface PolicyDeps {
  db: UnscopedDb
  cells: Pick<Cells, 'all'>
}

/** Judges the buckets that are due and starts interventions. A cell that is unavailable does not delay the others. */
export async function runPolicies({ db, cells }: PolicyDeps, signal?: AbortSignal): Promise<void> {
  const judged = await Promise.allSettled(cells.all.map((cell) => evaluatePolicies(db, cell, signal)))
  await enforceFirings(db, signal)
  for (const outcome of judged) if (outcome.status === 'rejected') throw outcome.reason
}
