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
import type { Leased } from './endpoint-queues.sql.ts'
import { bodyOf, type WebhookBody } from './signature.ts'
import { lookupBatching } from './targets.ts'

/** A due delivery with its event, excluding long data. */
export interface PendingDelivery {
  queue: Leased
  due: Due
  /** According to the process's monotonic clock. */
  readAt: number
  /** Undefined if the event no longer exists. */
  event: EventRow | undefined
  notes: MessageNotes | undefined
}

export type DeliveryWithEvent = PendingDelivery & { event: EventRow }

/** Longer events are read one by one when they are sent. */
const shortBytes = 1024
/** Prefetched deliveries of all endpoints: 16 MiB of short events. */
const maxPrefetched = 16_384
/** One endpoint can prefetch this fraction (1/8) of what is left. */
const leftShare = 8
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
  #prefetched = 0
  readonly #longBudgets = {
    healthy: new ByteBudget<number>(longBudgetBytes),
    failing: new ByteBudget<number>(longBudgetBytes),
  }

  constructor(db: UnscopedDb) {
    this.#db = db
    this.#lookups = new Batcher((wanted) => this.#find(wanted), lookupBatching)
  }

  /** Reserves memory for up to `wanted` deliveries of an endpoint. Returns for how many, at least one. */
  reserve(wanted: number): number {
    const share = Math.floor((maxPrefetched - this.#prefetched) / leftShare)
    const reserved = Math.min(wanted, Math.max(1, share))
    this.#prefetched += reserved
    return reserved
  }

  /** For deliveries that were reserved and are no longer waiting, or do not exist. */
  release(count: number): void {
    this.#prefetched -= count
  }

  /** The next deliveries of a queue, in order. `most` must have been reserved. */
  next(wanted: Wanted): Promise<PendingDelivery[]> {
    return this.#lookups.submit(wanted)
  }

  /** The body of a short event. */
  bodyOf({ queue, event, notes }: DeliveryWithEvent): WebhookBody {
    return build(queue, event, notes)
  }

  /** Builds the body. A long event is read first, and charged to the budget until `use` resolves. */
  async withBody<T>(
    delivery: DeliveryWithEvent,
    health: 'healthy' | 'failing',
    use: (body: WebhookBody) => Promise<T>,
  ): Promise<T> {
    const { queue, event } = delivery
    if (event.data !== null) return use(this.bodyOf(delivery))
    const { shard } = queue
    const release = await this.#longBudgets[health].take(event.size, queue.project_id)
    try {
      const found = await this.#db.readOne((tx) => findEvents(tx, [{ shard, id: event.id }], anyLength))
      const whole = found.get(event.id)
      if (!whole) throw new Error(`event ${event.id} has a delivery but does not exist`)
      const ofMessage = await this.#notesOf([{ shard, id: whole.message_id }])
      const rest = await this.#inboundDataOf(whole, shard)
      return await use(build(queue, whole, ofMessage.get(whole.message_id ?? ''), rest))
    } finally {
      release()
    }
  }

  async #find(wanted: readonly Wanted[]): Promise<PendingDelivery[][]> {
    const due = await this.#db.readOne((tx) => findDue(tx, wanted))
    const pending = wanted.map((): PendingDelivery[] => [])
    if (due.length === 0) return pending
    const readAt = performance.now()
    const shardOf = ({ index }: Due) => wanted[index]?.shard ?? 0
    const keys = due.map((one) => ({ shard: shardOf(one), id: one.event_id }))
    const events = await this.#db.readOne((tx) => findEvents(tx, keys, shortBytes))
    const found = keys.flatMap(({ shard, id }) => {
      const event = events.get(id)
      return event ? [{ shard, event }] : []
    })
    await this.#addInboundSizes(found)
    const short = found.filter(({ event }) => event.data !== null)
    const notes = await this.#notesOf(short.map(({ shard, event }) => ({ shard, id: event.message_id })))
    for (const one of due) {
      const queue = wanted[one.index]
      const event = events.get(one.event_id)
      const ofMessage = event?.message_id == null ? undefined : notes.get(event.message_id)
      if (queue) pending[one.index]?.push({ queue, due: one, readAt, event, notes: ofMessage })
    }
    return pending
  }

  /** A message's events share its inbound data. The data is treated as long and charged to each event. */
  async #addInboundSizes(found: readonly { shard: number; event: EventRow }[]): Promise<void> {
    const keys = found.flatMap(({ shard, event: { inbound_body_id: id } }) =>
      id === null ? [] : [{ shard, id }],
    )
    if (keys.length === 0) return
    const sizes = await this.#db.readOne((tx) => findInboundSizes(tx, keys))
    for (const event of new Set(found.map(({ event }) => event))) {
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

const build = (
  { project_id }: Leased,
  { type, created_at, message_id, data }: EventRow,
  notes: MessageNotes | undefined,
  rest?: Buffer,
): WebhookBody =>
  bodyOf({
    type,
    created_at,
    project_id,
    message_id,
    tags: notes?.tags,
    metadata: notes?.metadata,
    data: data ?? '{}',
    rest,
  })
