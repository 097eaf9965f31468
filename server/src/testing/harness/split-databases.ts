import { Cells, cellIn } from '../../platform/db/cells.ts'
import { Database, type DatabaseOptions } from '../../platform/db/db.ts'

/**
 * With POSTERN_TEST_SPLIT the tests run on two servers: one for the control database, and one as a cell for all mail.
 * Replication works as in production. A statement sent to the wrong database is rejected
 * (platform/db/database-kind.ts), so every test detects such errors. A commit in the control database waits until the
 * cell has applied it, because tests read their own writes.
 */
export const isSplit = process.env['POSTERN_TEST_SPLIT'] !== undefined

/** Settings for the control server: a commit waits for the cells if the database sets synchronous_commit. */
export const controlSettings = { wal_level: 'logical', synchronous_standby_names: '*' }

/** The mail role connects to the cell, and every other role to the control database. */
export class SplitDatabase extends Database {
  readonly #cell: Database

  constructor(options: DatabaseOptions, cellUrl: string) {
    super(options)
    this.#cell = new Database({ ...options, url: cellUrl })
  }

  override as(role: 'admin' | 'mail' | 'identity') {
    return role === 'mail' ? this.#cell.as('mail') : super.as(role)
  }

  cells(): Cells {
    return new Cells([cellIn(this.#cell, { name: 'mail' })])
  }

  override async close(): Promise<void> {
    await super.close()
    await this.#cell.close()
  }
}

/** Determines which database a test's statement is sent to. */
export const isOfMail = (text: string): boolean => /\bmail\.[a-z_]/.test(text)
export const isOfBoth = (text: string): boolean => /\bpostern\.clock_offset\b/.test(text)
