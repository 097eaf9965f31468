import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { storable } from '../messages/events.ts'
import { finishRows, type Result } from './attempt-recorder.sql.ts'
import type { Claimed } from './claims.sql.ts'
import type { ResultKey } from './results.sql.ts'
import type { RetryDecision } from './retry-policy.ts'

/**
 * Records how attempts ended, until their leases are over; then another worker has the mails. A mail that no other worker
 * may try is kept for as long as a report about it is awaited.
 *
 * The transaction ends the attempt and leaves its result, and does nothing else: events, counters and suppressions come
 * later (results.ts), and cannot undo it.
 */
export interface EndedAttempt {
  claimed: Claimed
  judged: RetryDecision
  /** RFC 3463, where the MTA gave one. */
  status: string | null
  /** Of a test key: everything happens but the hand-over. */
  isTest: boolean
}

export interface AttemptRecorderOptions {
  onRecorded(results: readonly ResultKey[]): void
  onError(error: unknown, lost: number): void
}

const atOnce = 100

export class AttemptRecorder {
  readonly #recorder: BatchWriter<EndedAttempt>

  constructor(db: Db, { onRecorded, onError }: AttemptRecorderOptions) {
    this.#recorder = new BatchWriter({
      write: async (ended) => onRecorded(await db.transaction((tx) => recordAttempts(tx, ended))),
      atOnce,
      onError,
    })
  }

  /** Resolves when it is recorded, or given up. */
  finish(ended: EndedAttempt, withinMs: number): Promise<void> {
    return this.#recorder.record(ended, performance.now() + withinMs)
  }
}

/** Returns the results that are left to publish. */
export const recordAttempts = (tx: Tx, ended: readonly EndedAttempt[]): Promise<ResultKey[]> =>
  finishRows(tx, ended.map(resultOf))

function resultOf({ claimed, judged, status: enhancedStatus, isTest }: EndedAttempt): Result {
  const { shard, message_id, recipient_no, project_id, attempt, provider, recipient } = claimed
  return {
    ...{ shard, message_id, recipient_no, project_id, attempt, provider, recipient },
    startedAt: claimed.claimed_at,
    ...judged,
    ...{ enhancedStatus, isTest },
    status: isTest && judged.status === 'sent' ? 'delivered' : judged.status,
    reply: judged.reply === null ? null : storable(judged.reply),
  }
}
