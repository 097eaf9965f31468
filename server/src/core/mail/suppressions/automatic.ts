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
export async function suppressBounced(
  tx: Tx,
  bounces: readonly Bounce[],
  suppressOn: ReadonlySet<string>,
): Promise<void> {
  for (const { projectId, messageId, recipient, status } of bounces) {
    if (status === null || !suppressOn.has(status)) continue
    await insertAutomatic(tx, projectId, recipient, 'bounce', messageId)
  }
}

export const suppressComplained = (
  tx: Tx,
  { projectId, messageId, recipient }: Omit<Bounce, 'status'>,
): Promise<void> => insertAutomatic(tx, projectId, recipient, 'complaint', messageId)
