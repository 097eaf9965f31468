import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { storable } from '../messages/events.ts'
import { type Result, recordRows } from './attempt-recorder.sql.ts'
import type { Claimed } from './claims.sql.ts'
import type { ResultKey } from './results.sql.ts'
import type { RetryDecision } from './retry-policy.ts'

// Records how attempts ended, many in one transaction, and retries until their leases expire; then another worker may claim
// the mails. A result whose mail no other worker may claim is retried for as long as its report is awaited.
//
// The transaction ends the attempt and inserts its result, and nothing else. Events, counters and suppressions follow in a
// later transaction (results.ts), which cannot undo this one.

export interface EndedAttempt {
  claimed: Claimed
  decision: RetryDecision
  /** RFC 3463, if the MTA gave one. */
  status: string | null
  /** Accepted with a test key: nothing was handed over. */
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

  /** Resolves when the attempt is recorded, or `withinMs` have passed. */
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
