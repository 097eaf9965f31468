import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { Counter } from '../telemetry/metrics.ts'
import type { DB as Schema } from './schema.gen.ts'

// Sends hints to workers after a commit: `NOTIFY` with the name of the work for which rows were written. hints.ts
// describes how workers use them.
//
// A hint is a separate statement after the commit, because a transaction with NOTIFY holds a lock on the server during its
// commit, and all such transactions in the database cluster would commit one after another.

export const hintNames = ['mail', 'webhooks', 'outbox', 'jobs'] as const
export type HintName = (typeof hintNames)[number]

export const hintChannel = 'postern_hints'

export const hintCount = new Counter(
  'postern_hints_total',
  'Hints to workers, by name and outcome: sent or failed in the process that wrote the rows, received in workers.',
  { name: hintNames, outcome: ['sent', 'failed', 'received'] },
)

export type Notify = (names: readonly HintName[]) => Promise<unknown>

export const notifyOn = (db: Kysely<Schema>, payloads: readonly string[]): Promise<unknown> =>
  sql`select pg_notify(${hintChannel}, payload) from unnest(${payloads}::text[]) as payload`.execute(db)

/** The minimum time between two statements. */
const pauseMs = 50

/**
 * Sends the first hint immediately, and then all hints of each interval in one statement. Errors are only counted: the
 * workers find the rows by polling.
 */
export class HintSender {
  readonly #pause: () => Promise<unknown>
  readonly #waiting = new Set<HintName>()
  #isSending = false

  /** `pause` is for tests. */
  constructor(pause: () => Promise<unknown> = () => sleep(pauseMs, undefined, { ref: false })) {
    this.#pause = pause
  }

  send(names: ReadonlySet<HintName>, notify: Notify): void {
    for (const name of names) this.#waiting.add(name)
    if (!this.#isSending && this.#waiting.size > 0) void this.#sendWaiting(notify)
  }

  async #sendWaiting(notify: Notify): Promise<void> {
    this.#isSending = true
    while (this.#waiting.size > 0) {
      const names = [...this.#waiting]
      this.#waiting.clear()
      const outcome = await notify(names).then(
        () => 'sent' as const,
        () => 'failed' as const,
      )
      for (const name of names) hintCount.add({ name, outcome })
      await this.#pause()
    }
    this.#isSending = false
  }
}
