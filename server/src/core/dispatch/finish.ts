import type { Db, Tx } from '../../platform/db/db.ts'
import { Recorder } from '../../platform/recorder.ts'
import { suppressBounced } from '../feedback/feedback.ts'
import { countDaily } from '../messages/daily.ts'
import { type RecipientEvent, storable, writeRecipientEvents } from '../messages/events.ts'
import type { Claimed } from './claim.sql.ts'
import { finishRows, type Result } from './finish.sql.ts'
import type { Judged } from './outcome.ts'

/**
 * Writes down what became of attempts, until their leases are over; then somebody else has the mails. Where nobody else
 * may have one, it is tried for as long as a word about it is waited for.
 */
export interface Ended {
  claimed: Claimed
  judged: Judged
  /** RFC 3463, where the MTA gave one. */
  status: string | null
  /** Of a key for tests: everything happens but the hand-over. */
  isTest: boolean
}

export interface FinisherOptions {
  suppressOn: ReadonlySet<string>
  onError(error: unknown, lost: number): void
}

const atOnce = 100

export class Finisher {
  readonly #recorder: Recorder<Ended>

  constructor(db: Db, { suppressOn, onError }: FinisherOptions) {
    this.#recorder = new Recorder({
      write: (ended) => db.transaction((tx) => writeDown(tx, ended, suppressOn)),
      atOnce,
      onError,
    })
  }

  /** Resolves when it is written down, or given up. */
  finish(ended: Ended, withinMs: number): Promise<void> {
    return this.#recorder.record(ended, performance.now() + withinMs)
  }
}

export async function writeDown(
  tx: Tx,
  ended: readonly Ended[],
  suppressOn: ReadonlySet<string>,
): Promise<void> {
  const finished = await finishRows(tx, ended.map(resultOf))
  const byKey = new Map(finished.map((row) => [`${row.message_id} ${row.recipient_no}`, row]))
  const events = ended.flatMap((one): RecipientEvent[] => {
    const row = byKey.get(`${one.claimed.message_id} ${one.claimed.recipient_no}`)
    if (!row) return []
    const { judged, isTest } = one
    if (judged.outcome === 'sent')
      return [eventOf(one, 'message.sent'), ...(isTest ? [eventOf(one, 'message.delivered')] : [])]
    return row.has_changed && judged.status !== null ? [eventOf(one, `message.${judged.status}`)] : []
  })
  await writeRecipientEvents(tx, events)
  await suppressBounced(tx, events, suppressOn)
  // Mail that was never sent says nothing about how a project sends.
  const tests = new Set(ended.filter(({ isTest }) => isTest).map(({ claimed }) => claimed.message_id))
  await countDaily(
    tx,
    events
      .filter(({ messageId }) => !tests.has(messageId))
      .map(({ projectId, type }) => ({ projectId, [type.slice('message.'.length)]: 1 })),
  )
}

const eventOf = ({ claimed, judged, status }: Ended, type: RecipientEvent['type']): RecipientEvent => ({
  projectId: claimed.project_id,
  messageId: claimed.message_id,
  recipientNo: claimed.recipient_no,
  type,
  recipient: claimed.recipient,
  status,
  diagnostic: judged.reply,
})

function resultOf({ claimed, judged, isTest }: Ended): Result {
  const { shard, message_id, recipient_no, project_id, attempt, provider, claimed_at: startedAt } = claimed
  return {
    shard,
    message_id,
    recipient_no,
    project_id,
    attempt,
    provider,
    startedAt,
    ...judged,
    status: isTest && judged.status === 'sent' ? 'delivered' : judged.status,
    reply: judged.reply === null ? null : storable(judged.reply),
  }
}
