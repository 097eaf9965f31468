import type { Static } from 'typebox'
import type { Actor } from '../../core/control/audit/record.ts'
import type { BulkOperation } from '../../core/control/bulk/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { statusOf } from '../../platform/http/problem.ts'
import { KeyedSemaphore } from '../../platform/scheduling/keyed-semaphore.ts'
import type { AdminDeps } from '../operation.ts'
import { perform } from '../pipeline.ts'
import type { Preview } from '../preview.ts'
import { bulkOperationTable } from './operations.ts'
import { type BulkPreview, maxSamples } from './preview-wire.ts'

/** What a preview may take. Longer than a thousand projects need, and shorter than the timeouts of browsers and proxies. */
const evaluationMs = 25_000
const atOnce = 4

interface Evaluated {
  actor: Actor
  requestId: string
  operation: BulkOperation
  body: Record<string, unknown>
}

/** Shared by all evaluations of the process, so that a few administrators cannot hold all of its connections. */
const slots = new KeyedSemaphore<'evaluation'>({ atOnce, waitingAtMost: Number.POSITIVE_INFINITY })

/** The evaluation that each administrator requested last. A dialog requests another one after each edit of its fields. */
const running = new Map<number, AbortController>()

/**
 * Tries the operation for the projects, one by one, as the worker would perform it, and rolls each back. Ends early if it takes
 * too long, or if the same administrator requests another evaluation.
 */
export async function evaluate(
  deps: AdminDeps,
  call: Evaluated,
  projectIds: readonly number[],
  withinMs = evaluationMs,
): Promise<Static<typeof BulkPreview>> {
  const replaced = new AbortController()
  running.get(call.actor.id)?.abort()
  running.set(call.actor.id, replaced)
  const signal = AbortSignal.any([replaced.signal, AbortSignal.timeout(withinMs)])
  const tally = new Tally(projectIds.length)
  try {
    for (let from = 0; from < projectIds.length && !signal.aborted; from += atOnce) {
      const batch = projectIds.slice(from, from + atOnce)
      const needsPreview = tally.needsSample
      const results = await Promise.all(
        batch.map((id) => slots.run('evaluation', () => evaluateOne(deps, call, id, needsPreview))),
      )
      for (const [index, result] of results.entries()) tally.add(batch[index] ?? 0, result)
    }
  } finally {
    if (running.get(call.actor.id) === replaced) running.delete(call.actor.id)
  }
  return deps.db.read((tx) => tally.preview(tx))
}

type Result = { isChanged: boolean; preview: Static<typeof Preview> | null } | { refusal: PosternError }

async function evaluateOne(
  deps: AdminDeps,
  { actor, requestId, operation, body }: Evaluated,
  projectId: number,
  needsPreview: boolean,
): Promise<Result> {
  let isChanged = false
  try {
    const { body: preview } = await perform(
      bulkOperationTable[operation].operation,
      {
        ...{ actor, requestId, body, params: { project_id: projectId }, isDryRun: true },
        ...{ ifMatch: undefined, idempotencyKey: undefined },
        bulkItem: {
          bulkId: '',
          async end(_tx, hasChanged) {
            isChanged = hasChanged
          },
          ...(!needsPreview && { skipsPreview: true }),
        },
      },
      deps,
    )
    return { isChanged, preview: preview === null ? null : JSON.parse(preview) }
  } catch (error) {
    if (isRefusal(error)) return { refusal: error }
    throw error
  }
}

/** Whether a rule rejected the operation. Anything else is an outage or a bug. */
export const isRefusal = (error: unknown): error is PosternError =>
  error instanceof PosternError && statusOf[error.code] < 500

class Tally {
  readonly #matched: number
  readonly #counts = { changed: 0, unchanged: 0, refused: 0 }
  readonly #refusals = new Map<string, { error: string; message: string; count: number }>()
  readonly #sample: Omit<Static<typeof BulkPreview>['sample'][number], 'project_name'>[] = []

  constructor(matched: number) {
    this.#matched = matched
  }

  get needsSample(): boolean {
    return this.#sample.length < maxSamples
  }

  add(projectId: number, result: Result): void {
    if ('refusal' in result) {
      this.#refuse(result.refusal)
      return
    }
    this.#counts[result.isChanged ? 'changed' : 'unchanged']++
    if (!result.isChanged || !result.preview || !this.needsSample) return
    const { changes, effects, warnings } = result.preview
    this.#sample.push({ project_id: projectId, changes, effects, warnings })
  }

  #refuse({ code, message }: PosternError): void {
    this.#counts.refused++
    const known = this.#refusals.get(code)
    if (known) known.count++
    else this.#refusals.set(code, { error: code, message, count: 1 })
  }

  async preview(tx: ReadTx): Promise<Static<typeof BulkPreview>> {
    const sample: Static<typeof BulkPreview>['sample'] = []
    for (const { project_id, ...one } of this.#sample)
      sample.push({ project_id, project_name: (await findProject(tx, project_id)).name, ...one })
    const { changed, unchanged, refused } = this.#counts
    const evaluated = changed + unchanged + refused
    return {
      ...{ matched: this.#matched, evaluated, is_complete: evaluated === this.#matched },
      ...this.#counts,
      refusals: [...this.#refusals.values()],
      sample,
    }
  }
}
