import type { Db, Tx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { suppressBounced } from '../feedback/feedback.ts'
import { countDaily } from '../messages/daily.ts'
import { type RecipientEvent, storable, writeRecipientEvents } from '../messages/events.ts'
import type { Claimed } from './claim.sql.ts'
import { finishRows, type Result } from './finish.sql.ts'
import type { Judged } from './outcome.ts'

/**
 * Writes down what became of attempts, many in one transaction: whatever ends while one is under way goes into the next.
 * A transaction that fails is tried again until the leases are over; then somebody else has the mails. Where nobody else
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
const retryMs = 200

interface Waiting {
  ended: Ended
  /** What is not written down by then need not be any more. */
  until: number
  done: () => void
}

export class Finisher {
  readonly #db: Db
  readonly #options: FinisherOptions
  #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(db: Db, options: FinisherOptions) {
    this.#db = db
    this.#options = options
  }

  /** Resolves when it is written down, or given up. */
  finish(ended: Ended, withinMs: number): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ ended, until: performance.now() + withinMs, done })
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  async #run(): Promise<void> {
    // Once this turn of the event loop is over, with what ended in it.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const group = this.#waiting.slice(0, atOnce)
      try {
        await this.#write(group)
        this.#leave(group)
      } catch (error) {
        const { onError } = this.#options
        // A database that is away is so for all of them; anything else is the fault of one, which keeps the others
        // from being written only as long as they are in one transaction with it.
        const isAway = error instanceof PosternError
        if (!isAway) await this.#eachAlone(group)
        const late = isAway ? group.filter(({ until }) => performance.now() > until) : []
        onError(error, late.length)
        this.#leave(late)
        if (isAway) await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
  }

  #write(group: readonly Waiting[]): Promise<void> {
    const ended = group.map((one) => one.ended)
    return this.#db.transaction((tx) => writeDown(tx, ended, this.#options.suppressOn))
  }

  /** One that fails even so is left to its lease. */
  async #eachAlone(group: readonly Waiting[]): Promise<void> {
    for (const one of group) {
      await this.#write([one]).catch((error: unknown) => this.#options.onError(error, 1))
      this.#leave([one])
    }
  }

  #leave(group: readonly Waiting[]): void {
    const gone = new Set(group)
    this.#waiting = this.#waiting.filter((one) => !gone.has(one))
    for (const { done } of group) done()
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
