import { type SystemMailDeps, sendSystemMails } from '../../core/control/notifications/system-mails.ts'
import type { TestDatabase } from './database.ts'
import { patienceMs } from './waiting.ts'

/** Sends all waiting system mail, also what is only due later. */
export async function sendAllSystemMail(database: TestDatabase, deps: SystemMailDeps): Promise<void> {
  await database.query(
    `update control.system_mails set due_at = postern.now(), leased_until = null where outcome is null`,
  )
  await sendSystemMails(deps, 1000, AbortSignal.timeout(patienceMs))
}
