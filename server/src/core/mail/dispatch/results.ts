import { BatchWriter } from '../../../platform/batching/batch-writer.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { countSending, type SendingCount } from '../counters/counters.ts'
import { type RecipientEvent, writeRecipientEvents } from '../messages/events.ts'
import { suppressBounced } from '../suppressions/automatic.ts'
import { type AttemptResult, leaseDueResults, type ResultKey, takeResults } from './results.sql.ts'

// Publishes the results of attempts: writes their events, increments counters, and suppresses addresses that
// bounced. The same transaction deletes the results (mail.attempt_results), so each is published exactly
// once.
//
// The message's state has already been committed. If publishing fails or the process crashes, a worker
// publishes the rows later.

export type { AttemptResult, ResultKey }

export interface ResultPublisherOptions {
  suppressOn: ReadonlySet<string>
  onError(error: unknown, count: number): void
}

const atOnce = 200
/** Results published together share one transaction. No caller waits for them. */
const gatherMs = 50
/** When the lease expires, a result that this worker could not publish is picked up by any worker's sweep. */
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

  /** Publishes newly committed results in the background. */
  publish(keys: readonly ResultKey[]): void {
    const until = performance.now() + leaseMs
    for (const key of keys) {
      const done = this.#writer.submit(key, until).finally(() => this.#inProgress.delete(done))
      this.#inProgress.add(done)
    }
  }

  /** Publishes results that another worker did not publish. */
  async sweep(): Promise<void> {
    this.publish(await this.#db.transaction((tx) => leaseDueResults(tx, leasedAtOnce)))
  }

  async settled(): Promise<void> {
    await Promise.all(this.#inProgress)
  }
}

/**
 * The events and counts that result from attempts. The caller writes them, with the counters last
 * (countSending).
 */
export interface Consequences {
  events: RecipientEvent[]
  counts: SendingCount[]
}

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
  await countSending(tx, counts)
}

export function consequencesOf(results: readonly AttemptResult[]): Consequences {
  return {
    events: results.toSorted((a, b) => a.attempt - b.attempt).flatMap(eventsOf),
    // Mail accepted with a test key was not sent and does not affect the project's reputation.
    counts: results
      .filter(({ is_test }) => !is_test)
      .map(({ project_id: projectId, message_id: messageId, type, is_ended_by_operator: isExcluded }) => ({
        ...{ projectId, messageId, isExcluded, [type]: 1 },
        ...((type === 'bounced' || type === 'failed') && { rejected: 1 }),
      })),
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
