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

export type { ResultKey }

/**
 * Publishes the results of attempts: writes their events, counts them, and suppresses addresses that bounced. The
 * transaction that does so deletes the results, so each is published exactly once (mail.attempt_results).
 *
 * The mail's own state was committed before. If publishing fails, or the process dies, the rows wait for a worker.
 */
export interface ResultPublisherOptions {
  suppressOn: ReadonlySet<string>
  onError(error: unknown, count: number): void
}

const atOnce = 200
/** Results that are published together share the cost of a transaction. No caller waits for them. */
const gatherMs = 50
/** A result that this worker could not publish within its lease is left to the sweep of any worker. */
const leaseMs = 10_000
const leasedAtOnce = 1_000

export class ResultPublisher {
  readonly #db: Db
  readonly #recorder: BatchWriter<ResultKey>
  readonly #underWay = new Set<Promise<void>>()

  constructor(db: Db, { suppressOn, onError }: ResultPublisherOptions) {
    this.#db = db
    this.#recorder = new BatchWriter({
      write: (keys) =>
        db.transaction(async (tx) => publish(tx, consequencesOf(await takeResults(tx, keys)), suppressOn)),
      atOnce,
      gatherMs,
      onError,
    })
  }

  /** Of results that were just committed. Nothing waits for it. */
  publish(keys: readonly ResultKey[]): void {
    const until = performance.now() + leaseMs
    for (const key of keys) {
      const done = this.#recorder.record(key, until).finally(() => this.#underWay.delete(done))
      this.#underWay.add(done)
    }
  }

  /** Takes over results that a worker has left behind. */
  async sweep(): Promise<void> {
    this.publish(await this.#db.transaction((tx) => leaseDueResults(tx, leasedAtOnce)))
  }

  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}

/** What follows from results: the caller writes it, counters last (countDaily). */
export interface Consequences {
  events: RecipientEvent[]
  counts: DailyCounts[]
}

/**
 * What is not published yet of one recipient. A report about it publishes this along with its own event, so that
 * `message.sent` comes before `message.delivered`.
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
    // Mail of a test key was not sent, and says nothing about the project's reputation.
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
