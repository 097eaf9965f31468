import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Tx, UnscopedDb } from '../../../platform/db/db.ts'
import { type Result, writeResults } from './deliveries.sql.ts'
import {
  insertDisabled,
  type Leased,
  lockLeased,
  type QueueNews,
  updateQueues,
} from './endpoint-queues.sql.ts'

/** What a round has to tell of its queue: results, and at last that it gives the queue back. */
export interface DeliveryResult {
  queue: Leased
  results: Result[]
  /** Something was taken, for the first time in this round. */
  hasTaken: boolean
  /** At the end of the round. `restMs`: how long the queue is left alone. */
  release?: { hasFailed: boolean; restMs: number; disabledBecause?: string | undefined }
}

const atOnce = 500
/** Nobody waits for it, and a transaction costs as much for a hundred as for one. */
const gatherMs = 20
/** Rounds begin nothing new while so much is not written down. */
const behindAtMost = 2_000
/** An endpoint that took nothing for so long is switched off. */
const failingDaysAtMost = 5
/** Of a receiver that is hardly asked, days alone say nothing: a week without events is no week of failures. */
const failuresAtLeast = 12

const tookNothing = `It took nothing for ${failingDaysAtMost} days.`

/**
 * Writes down reports of many rounds, until their leases are over; then somebody else has the queue, and sends again what
 * could not be written down. Of a lease that is somebody else's nothing is written.
 */
export class DeliveryResults {
  readonly #recorder: BatchWriter<DeliveryResult>

  constructor(db: UnscopedDb, onError: (error: unknown, lost: number) => void) {
    this.#recorder = new BatchWriter({
      write: (reports) => db.transaction((tx) => writeDeliveryResults(tx, reports)),
      ...{ atOnce, gatherMs, onError },
    })
  }

  get isBehind(): boolean {
    return this.#recorder.isFailing || this.#recorder.behind > behindAtMost
  }

  /** Resolves when it is written down, or given up. `until`: when the lease is over, by the steady clock. */
  write(report: DeliveryResult, until: number): Promise<void> {
    return this.#recorder.record(report, until)
  }
}

export async function writeDeliveryResults(tx: Tx, reports: readonly DeliveryResult[]): Promise<void> {
  const places = await lockLeased(
    tx,
    reports.map(({ queue }) => queue),
  )
  const held = reports.filter((_, place) => places.has(place))
  const results = held.flatMap(({ queue, results }) => results.map((result) => ({ queue, result })))
  if (results.length > 0) await writeResults(tx, results)
  const news = newsOf(held)
  if (news.length === 0) return
  const states = await updateQueues(tx, news)
  const disabled = held.flatMap(({ queue, release }) => {
    const state = states.find(
      ({ shard, endpoint_id }) => shard === queue.shard && endpoint_id === queue.endpoint_id,
    )
    const isOver =
      release?.hasFailed &&
      (state?.failing_seconds ?? 0) >= failingDaysAtMost * 86_400 &&
      (state?.failures ?? 0) >= failuresAtLeast
    const reason = release?.disabledBecause ?? (isOver ? tookNothing : undefined)
    return reason === undefined ? [] : [{ ...queue, reason }]
  })
  if (disabled.length > 0) await insertDisabled(tx, disabled)
}

/** Each queue once, with all that is new of it. */
function newsOf(reports: readonly DeliveryResult[]): QueueNews[] {
  const byQueue = new Map<string, QueueNews>()
  for (const { queue, hasTaken, release } of reports) {
    if (!hasTaken && !release) continue
    const key = `${queue.shard} ${queue.endpoint_id}`
    const known = byQueue.get(key)
    byQueue.set(key, {
      ...queue,
      hasTaken: hasTaken || (known?.hasTaken ?? false),
      hasFailed: release?.hasFailed ?? known?.hasFailed ?? false,
      restMs: release?.restMs ?? known?.restMs,
    })
  }
  return [...byQueue.values()]
}
