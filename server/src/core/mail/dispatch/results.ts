import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { countDaily, type DailyCounts } from '../messages/daily-counters.ts'
import { type RecipientEvent, writeRecipientEvents } from '../messages/events.ts'
import { suppressBounced } from '../suppressions/automatic.ts'
import {
  type AttemptResult,
  leaseDueResults,
  type ResultKey,
  takeResults,
  takeResultsOf,
} from './results.sql.ts'

// Publishes the results of attempts: writes their events, counts them, and suppresses addresses that bounced. The same
// transaction deletes the results, so each is published exactly once (mail.attempt_results).
//
// The mail's own state was committed before. If publishing fails, or the process dies, a worker publishes the rows later.

export type { ResultKey }

export interface ResultPublisherOptions {
  suppressOn: ReadonlySet<string>
  onError(error: unknown, count: number): void
}

const atOnce = 200
/** Results published together share the cost of a transaction. No caller waits for them. */
const gatherMs = 50
/** A result that this worker could not publish within its lease is left to the sweep of any worker. */
const leaseMs = 10_000
const leasedAtOnce = 1_000

export class ResultPublisher {
  readonly #db: Db
  readonly #writer: BatchWriter<ResultKey>
  readonly #inProgress = new Set<Promise<void>>()

  constructor(db: Db, { suppressOn, onError }: ResultPublisherOptions) {
    this.#db = db
    this.#writer = new BatchWriter({
      write: (keys) =>
        db.transaction(async (tx) => publish(tx, consequencesOf(await takeResults(tx, keys)), suppressOn)),
      atOnce,
      gatherMs,
      onError,
    })
  }

  /** Publishes results that were just committed, in the background. */
  publish(keys: readonly ResultKey[]): void {
    const until = performance.now() + leaseMs
    for (const key of keys) {
      const done = this.#writer.submit(key, until).finally(() => this.#inProgress.delete(done))
      this.#inProgress.add(done)
    }
  }

  /** Publishes results that another worker left. */
  async sweep(): Promise<void> {
    this.publish(await this.#db.transaction((tx) => leaseDueResults(tx, leasedAtOnce)))
  }

  async settled(): Promise<void> {
    await Promise.all(this.#inProgress)
  }
}

/** Events and counts that follow from results. The caller writes them, counters last (countDaily). */
export interface Consequences {
  events: RecipientEvent[]
  counts: DailyCounts[]
}

/**
 * The unpublished results of one recipient. A report about the recipient publishes them with its own event, so that
 * `message.sent` precedes `message.delivered`.
 */
export const takeEarlier = async (
  tx: Tx,
  recipient: { shard: number; messageId: string; recipientNo: number },
): Promise<Consequences> => consequencesOf(await takeResultsOf(tx, recipient))

export async function publish(
  tx: Tx,
  { events, counts }: Consequences,
  suppressOn: ReadonlySet<string>,
): Promise<void> {
  await writeRecipientEvents(tx, events)
  await suppressBounced(
    tx,
    events.filter(({ type }) => type === 'message.bounced'),
    suppressOn,
  )
  await countDaily(tx, counts)
}

function consequencesOf(results: readonly AttemptResult[]): Consequences {
  return {
    events: results.toSorted((a, b) => a.attempt - b.attempt).flatMap(eventsOf),
    // Mail of a test key was not sent and does not count for the project's reputation.
    counts: results
      .filter(({ is_test }) => !is_test)
      .map(({ project_id: projectId, type }) => ({ projectId, [type]: 1 })),
  }
}

function eventsOf(result: AttemptResult): RecipientEvent[] {
  const { project_id: projectId, message_id: messageId, recipient_no: recipientNo } = result
  const { recipient, status, diagnostic, type, is_test } = result
  const event = (of: RecipientEvent['type']): RecipientEvent => ({
    ...{ projectId, messageId, recipientNo, type: of, recipient, status, diagnostic },
  })
  return type === 'sent' && is_test
    ? [event('message.sent'), event('message.delivered')]
    : [event(`message.${type}`)]
}
