import { beyond, type Caps } from '../../core/control/caps/caps.ts'
import type { BeforeAdding } from '../../core/mail/suppressions/suppressions.ts'
import { publishToMail } from '../../core/outbox/outbox.ts'
import { databaseTime } from '../../platform/db/clock.ts'
import type { Tx } from '../../platform/db/db.ts'

/** Shared by `suppressions.create` and `suppressions.import`. */

const perMessage = 1000

interface Added {
  address: string
  reason: string
}

/** This plane cannot write the mail schema: a worker adds the suppressions. Returns their time. */
export async function publishAdded(tx: Tx, projectId: number, added: readonly Added[]): Promise<Date> {
  const at = await databaseTime(tx)
  for (let from = 0; from < added.length; from += perMessage) {
    const suppressions = added.slice(from, from + perMessage)
    await publishToMail(tx, projectId, 'suppressions.added', { suppressions, created_at: at.toISOString() })
  }
  return at
}

/** Only manual suppressions count. */
export function addedBeyond(caps: Caps, { manual }: BeforeAdding, added: readonly Added[]) {
  const more = added.filter(({ reason }) => reason === 'manual').length
  return more === 0 ? null : beyond('max_suppressions', caps.max_suppressions, manual + more)
}

export const queuedMailStays = 'Mail to these addresses that is already accepted is still sent.'
