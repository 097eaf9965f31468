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
import { gathering } from './targets.ts'

/** A delivery that is due, with what it is about, but for what is long. */
export interface PendingDelivery {
  due: Due
  /** By the process's steady clock. */
  readAt: number
  /** Undefined: there is no such event any more. */
  event: EventRow | undefined
  notes: MessageNotes | undefined
}

/** Longer events are read one by one, when they are sent. With 500 queues of 32 such, that is 16 MiB. */
const shortBytes = 1024
/** Of an endpoint's that are read ahead. */
export const aheadAtMost = 32
/** Of what is long, for those that answer and for the others: together with what is short, 32 MiB. */
const longBytes = 8 * 1024 * 1024

/** An integer of PostgreSQL. */
const anyLength = 2 ** 31 - 1

export class PendingDeliveries {
  readonly #db: UnscopedDb
  readonly #asked: Batcher<Wanted, PendingDelivery[]>
  readonly #long = { proven: new ByteBudget<number>(longBytes), unproven: new ByteBudget<number>(longBytes) }

  constructor(db: UnscopedDb) {
    this.#db = db
    this.#asked = new Batcher((wanted) => this.#find(wanted), gathering)
  }

  /** The next ones of a queue, in their order. */
  next(wanted: Wanted): Promise<PendingDelivery[]> {
    return this.#asked.ask(wanted)
  }

  /** Has the body read and built, for as long as `use` takes. */
  async withBody<T>(
    { due, event, notes }: PendingDelivery & { event: EventRow },
    standing: 'proven' | 'unproven',
    use: (body: Buffer) => Promise<T>,
  ): Promise<T> {
    const build = (whole: EventRow, said: MessageNotes | undefined, rest?: Buffer) =>
      bodyOf({
        type: whole.type,
        created_at: whole.created_at,
        project_id: due.project_id,
        message_id: whole.message_id,
        tags: said?.tags ?? null,
        metadata: said?.metadata ?? null,
        data: whole.data ?? '{}',
        rest,
      })
    if (event.data !== null) return use(build(event, notes))
    const giveBack = await this.#long[standing].take(event.size, due.project_id)
    try {
      const { shard } = due
      const found = await this.#db.readOne((tx) => findEvents(tx, [{ shard, id: event.id }], anyLength))
      const whole = found.get(event.id)
      if (!whole) throw new Error(`event ${event.id} is to be delivered and is not there any more`)
      const said = await this.#notesOf([{ shard, id: whole.message_id }])
      return await use(build(whole, said.get(whole.message_id ?? ''), await this.#restOf(whole, shard)))
    } finally {
      giveBack()
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
    await this.#countInbound(due, events)
    const about = due.flatMap(({ shard, event_id }) => {
      const event = events.get(event_id)
      return event && event.data !== null ? [{ shard, id: event.message_id }] : []
    })
    const notes = await this.#notesOf(about)
    const letters = wanted.map((): PendingDelivery[] => [])
    for (const one of due) {
      const event = events.get(one.event_id)
      const said = notes.get(event?.message_id ?? '')
      letters[one.place]?.push({ due: one, readAt, event, notes: said })
    }
    return letters
  }

  /** What an event shares with others of the same mail counts for each of them, and is long. */
  async #countInbound(due: readonly Due[], events: Map<string, EventRow>): Promise<void> {
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

  async #restOf({ id, inbound_body_id }: EventRow, shard: number): Promise<Buffer | undefined> {
    if (inbound_body_id === null) return undefined
    const rest = await this.#db.readOne((tx) => findInboundData(tx, { shard, id: inbound_body_id }))
    if (!rest) throw new Error(`the mail of event ${id} is to be delivered and is not there any more`)
    return rest
  }

  async #notesOf(of: readonly { shard: number; id: string | null }[]): Promise<Map<string, MessageNotes>> {
    const keys = of.flatMap(({ shard, id }) => (id === null ? [] : [{ shard, id }]))
    return keys.length === 0 ? new Map() : this.#db.readOne((tx) => findNotes(tx, keys))
  }
}
