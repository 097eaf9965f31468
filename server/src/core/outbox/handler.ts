import type { ReadTx, Tx } from '../../platform/db/db.ts'
import type { MailRow } from './outbox.sql.ts'

export type { MailRow }

/** The id is null for due work that has no outbox row. */
export type OutboxRow = Omit<MailRow, 'id'> & { id: number | null }

/**
 * Handles the rows of one topic of mail.outbox: reads the current state in a transaction in the mail database, and
 * returns a function that writes it in a transaction in the control database.
 */
export type OutboxHandler = (tx: ReadTx, rows: readonly OutboxRow[]) => Promise<Write>

/** `relayed`: the number of changes written. `done`: the ids of the rows to delete. */
export type Write = (tx: Tx) => Promise<{ relayed: number; done: number[] }>

export const idsOf = (rows: readonly OutboxRow[]): number[] => rows.flatMap(({ id }) => id ?? [])
