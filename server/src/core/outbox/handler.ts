import type { ReadTx, Tx } from '../../platform/db/db.ts'
import type { MailRow } from './outbox.sql.ts'

export type { MailRow }

/** What is due without anybody having written a row has no id. */
export type OutboxRow = Omit<MailRow, 'id'> & { id: number | null }

/**
 * What is done about the rows of one topic of mail.outbox: reads, in a transaction of the mail plane, what they speak
 * of, and gives back what writes it in one of control's.
 */
export type OutboxHandler = (tx: ReadTx, rows: readonly OutboxRow[]) => Promise<Write>

/** `done`: the ids of the rows that need not be looked at again. */
export type Write = (tx: Tx) => Promise<{ told: number; done: number[] }>

export const idsOf = (rows: readonly OutboxRow[]): number[] => rows.flatMap(({ id }) => id ?? [])
