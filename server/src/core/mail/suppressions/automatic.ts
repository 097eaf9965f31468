import type { Tx } from '../../../platform/db/db.ts'
import { insertAutomatic } from './suppressions.sql.ts'

export interface Bounce {
  projectId: number
  messageId: string
  recipient: string
  /** RFC 3463 code, such as 5.1.1. */
  status: string | null
}

/** Suppresses addresses that bounced with an enhanced status code in `suppressOn`. */
export const suppressBounced = (
  tx: Tx,
  bounces: readonly Bounce[],
  suppressOn: ReadonlySet<string>,
): Promise<void> =>
  insertAutomatic(
    tx,
    bounces.filter(({ status }) => status !== null && suppressOn.has(status)),
    'bounce',
  )

export const suppressComplained = (tx: Tx, complaints: readonly Omit<Bounce, 'status'>[]): Promise<void> =>
  insertAutomatic(tx, complaints, 'complaint')
