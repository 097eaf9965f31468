import { sql } from 'kysely'
import type { UnscopedDb } from '../../platform/db/db.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { openDatabase, type TestDatabase } from './database.ts'

const bucketMs = 5 * 60_000

/**
 * The control and the mail database, each with one connection whose clock the test sets. Time starts at the beginning of a
 * bucket of five minutes.
 */
export class VirtualTime {
  readonly db: UnscopedDb
  readonly mail: UnscopedDb
  /** What the time is now, up to the time that has really passed since it was set. */
  at = new Date(Math.ceil(Date.now() / bucketMs) * bucketMs)

  constructor(database: TestDatabase) {
    this.db = openDatabase(database, { poolSize: 1 }).as('admin')
    this.mail = openDatabase(database, { poolSize: 1 }).as('mail')
  }

  /** As deps of the worker's functions. */
  get deps() {
    return {
      db: this.db,
      log: createLogger('silent'),
      cells: { all: [{ name: 'mail', mail: this.mail }] as never },
    }
  }

  async set(at: Date): Promise<void> {
    this.at = at
    for (const db of [this.db, this.mail]) {
      await db.transaction((tx) =>
        sql`select set_config('postern.clock_offset', (${at}::timestamptz - pg_catalog.now())::text, false)`.execute(
          tx,
        ),
      )
    }
  }

  pass(minutes: number): Promise<void> {
    return this.set(new Date(this.at.getTime() + minutes * 60_000))
  }
}
