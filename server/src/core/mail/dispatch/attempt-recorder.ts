import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { storable } from '../messages/events.ts'
import { type Result, recordRows } from './attempt-recorder.sql.ts'
import type { Claimed } from './claims.sql.ts'
import type { ResultKey } from './results.sql.ts'
import type { RetryDecision } from './retry-policy.ts'

// Records the results of attempts in batches, with one transaction per batch. A failed write is retried until
// the lease expires and another worker can claim the message. If no other worker can claim the message, the
// write is retried for as long as Postern waits for the provider's report.
//
// The transaction only completes the attempt and inserts its result. Events, counters and suppressions are
// written in a later transaction (results.ts), which cannot undo this one.

export interface EndedAttempt {
  claimed: Claimed
  decision: RetryDecision
  /** RFC 3463 code, if the MTA returned one. */
  status: string | null
  /** Accepted with a test key, so nothing was sent to the provider. */
  isTest: boolean
}

export interface AttemptRecorderOptions {
  onRecorded(results: readonly ResultKey[]): void
  onError(error: unknown, lost: number): void
}

const atOnce = 100

export class AttemptRecorder {
  readonly #writer: BatchWriter<EndedAttempt>

  constructor(db: Db, { onRecorded, onError }: AttemptRecorderOptions) {
    this.#writer = new BatchWriter({
      write: async (ended) => onRecorded(await db.transaction((tx) => recordAttempts(tx, ended))),
      atOnce,
      onError,
    })
  }

  /** Resolves when the attempt is recorded or after `withinMs`. */
  record(ended: EndedAttempt, withinMs: number): Promise<void> {
    return this.#writer.submit(ended, performance.now() + withinMs)
  }
}

/** Returns the results to publish. */
export const recordAttempts = (tx: Tx, ended: readonly EndedAttempt[]): Promise<ResultKey[]> =>
  recordRows(tx, ended.map(resultOf))

function resultOf({ claimed, decision, status: enhancedStatus, isTest }: EndedAttempt): Result {
  const { shard, message_id, recipient_no, project_id, attempt, provider, recipient } = claimed
  return {
    ...{ shard, message_id, recipient_no, project_id, attempt, provider, recipient },
    startedAt: claimed.claimed_at,
    ...decision,
    ...{ enhancedStatus, isTest },
    status: isTest && decision.status === 'sent' ? 'delivered' : decision.status,
    reply: decision.reply === null ? null : storable(decision.reply),
  }
}
