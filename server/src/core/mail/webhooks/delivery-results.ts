import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { autoDisableReason } from './auto-disable.ts'
import { type Result, writeResults } from './deliveries.sql.ts'
import {
  insertDisabled,
  type Leased,
  lockLeased,
  type QueueUpdate,
  updateQueues,
} from './endpoint-queues.sql.ts'

// Records the results of delivery runs in batches, with one transaction per batch. A failed write is retried
// until the queue's lease expires; then another worker claims the queue and repeats the unrecorded
// deliveries. Results for a lost lease are discarded.

/** Results of a delivery run; the last one releases the queue. */
export interface DeliveryResult {
  queue: Leased
  results: Result[]
  /** Set with the run's first success, and again on release. */
  hasSucceeded: boolean
  /** Set at the end of the run. */
  release?: { hasFailed: boolean; isGone: boolean; backoffMs: number }
}

const atOnce = 500
/**
 * No caller waits for this, and a transaction with a hundred results costs as much as one with a single
 * result.
 */
const gatherMs = 20
/** Runs start no new requests while more than this many results are unrecorded. */
const maxBacklog = 2_000

export class DeliveryResults {
  readonly #writer: BatchWriter<DeliveryResult>

  constructor(db: UnscopedDb, onError: (error: unknown, lost: number) => void) {
    this.#writer = new BatchWriter({
      write: (batch) => db.transaction((tx) => writeDeliveryResults(tx, batch)),
      ...{ atOnce, gatherMs, onError },
    })
  }

  get isBehind(): boolean {
    return this.#writer.isFailing || this.#writer.pending > maxBacklog
  }

  /**
   * Resolves when the result is recorded or `until` (the end of the lease, by the monotonic clock) has
   * passed.
   */
  write(result: DeliveryResult, until: number): Promise<void> {
    return this.#writer.submit(result, until)
  }
}

export async function writeDeliveryResults(tx: Tx, batch: readonly DeliveryResult[]): Promise<void> {
  // A batch has many results of few queues.
  const queues = [...new Set(batch.map(({ queue }) => queue))]
  const leased = await lockLeased(tx, queues)
  const owners = new Set(queues.filter((_, index) => leased.has(index)))
  const owned = batch.filter(({ queue }) => owners.has(queue))
  const results = owned.flatMap(({ queue, results }) => results.map((result) => ({ queue, result })))
  if (results.length > 0) await writeResults(tx, results)
  const updates = queueUpdatesOf(owned)
  if (updates.length === 0) return
  const states = await updateQueues(tx, updates)
  const disabled = owned.flatMap(({ queue, release }) => {
    if (!release) return []
    const state = states.find(
      ({ shard, endpoint_id }) => shard === queue.shard && endpoint_id === queue.endpoint_id,
    )
    const reason = autoDisableReason(release, state)
    return reason === undefined ? [] : [{ ...queue, reason }]
  })
  if (disabled.length > 0) await insertDisabled(tx, disabled)
}

/** One update per queue. */
function queueUpdatesOf(batch: readonly DeliveryResult[]): QueueUpdate[] {
  const byQueue = new Map<string, QueueUpdate>()
  for (const { queue, hasSucceeded, release } of batch) {
    if (!hasSucceeded && !release) continue
    const key = `${queue.shard} ${queue.endpoint_id}`
    const known = byQueue.get(key)
    byQueue.set(key, {
      ...queue,
      hasSucceeded: hasSucceeded || (known?.hasSucceeded ?? false),
      hasFailed: release?.hasFailed ?? known?.hasFailed ?? false,
      backoffMs: release?.backoffMs ?? known?.backoffMs,
    })
  }
  return [...byQueue.values()]
}
