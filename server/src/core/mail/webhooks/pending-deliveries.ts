import { Batcher } from '../../../platform/batching/batcher.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import { ByteBudget } from '../../../platform/scheduling/byte-budget.ts'
import {
  type Due,
  type EventRow,
  findDue,
  findEvents,
  findInboundData,
  findInboundSizes,
  findNotes,
  type MessageNotes,
  type Wanted,
} from './deliveries.sql.ts'
import { bodyOf } from './signature.ts'
import { lookupBatching } from './targets.ts'

/** A due delivery with its event, excluding long data. */
export interface PendingDelivery {
  due: Due
  /** According to the process's monotonic clock. */
  readAt: number
  /** Undefined if the event no longer exists. */
  event: EventRow | undefined
  notes: MessageNotes | undefined
}

/** Longer events are read one by one when they are sent. 500 queues with 32 short events each take 16 MiB. */
const shortBytes = 1024
/** Maximum number of prefetched deliveries per endpoint. */
export const maxPrefetched = 32
/**
 * Memory for long events, with separate budgets for healthy and failing endpoints: 32 MiB in total with the
 * short events.
 */
const longBudgetBytes = 8 * 1024 * 1024

/** PostgreSQL's largest integer. */
const anyLength = 2 ** 31 - 1

export class PendingDeliveries {
  readonly #db: UnscopedDb
  readonly #lookups: Batcher<Wanted, PendingDelivery[]>
  readonly #longBudgets = {
    healthy: new ByteBudget<number>(longBudgetBytes),
    failing: new ByteBudget<number>(longBudgetBytes),
  }

  constructor(db: UnscopedDb) {
    this.#db = db
    this.#lookups = new Batcher((wanted) => this.#find(wanted), lookupBatching)
  }

  /** The next deliveries of a queue, in order. */
  next(wanted: Wanted): Promise<PendingDelivery[]> {
    return this.#lookups.submit(wanted)
  }

  /** Builds the body and charges it to the budget until `use` resolves. */
  async withBody<T>(
    { due, event, notes }: PendingDelivery & { event: EventRow },
    health: 'healthy' | 'failing',
    use: (body: Buffer) => Promise<T>,
  ): Promise<T> {
    const build = (whole: EventRow, messageNotes: MessageNotes | undefined, rest?: Buffer) =>
      bodyOf({
        type: whole.type,
        created_at: whole.created_at,
        project_id: due.project_id,
        message_id: whole.message_id,
        tags: messageNotes?.tags ?? null,
        metadata: messageNotes?.metadata ?? null,
        data: whole.data ?? '{}',
        rest,
      })
    if (event.data !== null) return use(build(event, notes))
    const release = await this.#longBudgets[health].take(event.size, due.project_id)
    try {
      const { shard } = due
      const found = await this.#db.readOne((tx) => findEvents(tx, [{ shard, id: event.id }], anyLength))
      const whole = found.get(event.id)
      if (!whole) throw new Error(`event ${event.id} has a delivery but does not exist`)
      const ofMessage = await this.#notesOf([{ shard, id: whole.message_id }])
      return await use(
        build(whole, ofMessage.get(whole.message_id ?? ''), await this.#inboundDataOf(whole, shard)),
      )
    } finally {
      release()
    }
  }

  async #find(wanted: readonly Wanted[]): Promise<PendingDelivery[][]> {
    const due = await this.#db.readOne((tx) => findDue(tx, wanted))
    const readAt = performance.now()
    const keys = due.map(({ shard, event_id: id }) => ({ shard, id }))
    const events =
      keys.length === 0
        ? new Map<string, EventRow>()
        : await this.#db.readOne((tx) => findEvents(tx, keys, shortBytes))
    await this.#addInboundSizes(due, events)
    const about = due.flatMap(({ shard, event_id }) => {
      const event = events.get(event_id)
      return event && event.data !== null ? [{ shard, id: event.message_id }] : []
    })
    const notes = await this.#notesOf(about)
    const pending = wanted.map((): PendingDelivery[] => [])
    for (const one of due) {
      const event = events.get(one.event_id)
      pending[one.index]?.push({ due: one, readAt, event, notes: notes.get(event?.message_id ?? '') })
    }
    return pending
  }

  /** A message's events share its inbound data. The data is treated as long and charged to each event. */
  async #addInboundSizes(due: readonly Due[], events: Map<string, EventRow>): Promise<void> {
    const keys = due.flatMap(({ shard, event_id }) => {
      const id = events.get(event_id)?.inbound_body_id
      return id == null ? [] : [{ shard, id }]
    })
    if (keys.length === 0) return
    const sizes = await this.#db.readOne((tx) => findInboundSizes(tx, keys))
    for (const event of events.values()) {
      if (event.inbound_body_id === null) continue
      event.size += sizes.get(event.inbound_body_id) ?? 0
      event.data = null
    }
  }

  async #inboundDataOf({ id, inbound_body_id }: EventRow, shard: number): Promise<Buffer | undefined> {
    if (inbound_body_id === null) return undefined
    const rest = await this.#db.readOne((tx) => findInboundData(tx, { shard, id: inbound_body_id }))
    if (!rest) throw new Error(`the inbound message of event ${id} has a delivery but does not exist`)
    return rest
  }

  async #notesOf(of: readonly { shard: number; id: string | null }[]): Promise<Map<string, MessageNotes>> {
    const keys = of.flatMap(({ shard, id }) => (id === null ? [] : [{ shard, id }]))
    return keys.length === 0 ? new Map() : this.#db.readOne((tx) => findNotes(tx, keys))
  }
}
