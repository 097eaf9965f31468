import type { ReadTx, Tx } from '../../platform/db/db.ts'
import type { MailRow } from './outbox.sql.ts'

export type { MailRow }

/** The id is null for work that is due without a row in the outbox. */
export type OutboxRow = Omit<MailRow, 'id'> & { id: number | null }

/**
 * Handles the rows of one topic of mail.outbox: reads the current state in a transaction of the mail side, and returns a
 * function that writes it in a transaction of control.
 */
export type OutboxHandler = (tx: ReadTx, rows: readonly OutboxRow[]) => Promise<Write>

/** `relayed`: how many changes were written. `done`: the ids of the rows to delete. */
export type Write = (tx: Tx) => Promise<{ relayed: number; done: number[] }>

export const idsOf = (rows: readonly OutboxRow[]): number[] => rows.flatMap(({ id }) => id ?? [])
