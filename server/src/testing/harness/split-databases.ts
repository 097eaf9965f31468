import { Cells, cellIn } from '../../platform/db/cells.ts'
import { Database, type DatabaseOptions } from '../../platform/db/db.ts'

/**
 * With POSTERN_TEST_SPLIT the tests run on two servers: control in one, and a cell for all mail in the other, supplied
 * by replication as in production. What went to the wrong one is refused there (platform/db/database-kind.ts), so that tests that
 * know nothing of this find it. A commit in control waits until the cell has it: tests read at once what they wrote.
 */
export const isSplit = process.env['POSTERN_TEST_SPLIT'] !== undefined

/** Of the server of control: whoever supplies cells is waited for, where a database asks for it. */
export const controlSettings = { wal_level: 'logical', synchronous_standby_names: '*' }

/** The mail plane's role is in the cell, and every other in control. */
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

/** Where a statement of a test belongs. */
export const isOfMail = (text: string): boolean => /\bmail\.[a-z_]/.test(text)
export const isOfBoth = (text: string): boolean => /\bpostern\.clock_offset\b/.test(text)
