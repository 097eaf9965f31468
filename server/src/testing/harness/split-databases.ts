import { Cells, cellIn } from '../../platform/db/cells.ts'
import { Database, type DatabaseOptions } from '../../platform/db/db.ts'

/**
 * With POSTERN_TEST_SPLIT the tests run on two servers: control in one, and a cell for all mail in the other, replicated
 * as in production. A statement sent to the wrong database is refused there (platform/db/database-kind.ts), so that every
 * test finds such errors. A commit in control waits until the cell has applied it: tests read what they wrote.
 */
export const isSplit = process.env['POSTERN_TEST_SPLIT'] !== undefined

/** Of the control server: a commit waits for the cells where the database sets synchronous_commit. */
export const controlSettings = { wal_level: 'logical', synchronous_standby_names: '*' }

/** The mail role connects to the cell, every other role to control. */
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

/** To which database a test's statement goes. */
export const isOfMail = (text: string): boolean => /\bmail\.[a-z_]/.test(text)
export const isOfBoth = (text: string): boolean => /\bpostern\.clock_offset\b/.test(text)
