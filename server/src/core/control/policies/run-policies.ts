import type { Cell, Cells } from '../../../platform/db/cells.ts'
import { enforceFirings } from './enforcement.ts'
import { deleteOtherProgress } from './evaluation.sql.ts'
import { type EvaluationDeps, evaluateNext } from './evaluation.ts'

export interface PolicyDeps extends EvaluationDeps {
  cells: Pick<Cells, 'all'>
}

/**
 * Evaluates the buckets that are due, and starts interventions after each of them. A cell that is unavailable does not delay
 * the others.
 */
export async function runPolicies(deps: PolicyDeps, signal?: AbortSignal): Promise<void> {
  const { db, cells } = deps
  await enforceFirings(db, signal)
  const outcomes = await Promise.allSettled(cells.all.map((cell) => runCell(deps, cell, signal)))
  if (outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value > 0)) {
    const names = cells.all.map(({ name }) => name)
    await db.transaction((tx) => deleteOtherProgress(tx, names))
  }
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

/** Returns the number of buckets that were evaluated. */
async function runCell(deps: PolicyDeps, cell: Cell, signal: AbortSignal | undefined): Promise<number> {
  let evaluated = 0
  for (; !signal?.aborted && (await evaluateNext(deps, cell)); evaluated++) {
    await enforceFirings(deps.db, signal)
  }
  return evaluated
}
