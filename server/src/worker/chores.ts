import { runCheckpoints } from '../core/audit/checkpoints.ts'
import { purgeDenials } from '../core/audit/denials.ts'
import { forgetSeenFeedback } from '../core/feedback/feedback.ts'
import { forgetExpiredAnswers } from '../core/idempotency/idempotency.ts'
import { forgetExpiredMailAnswers } from '../core/messages/repetition.ts'
import { forgetApplied } from '../core/outbox/apply.ts'
import type { MasterKeys } from '../core/secrets/master-keys.ts'
import type { Db } from '../platform/db/db.ts'
import type { Logger } from '../platform/log.ts'

/**
 * What is done once a minute: signing the audit, and forgetting what has had its time. Each can be run twice or by
 * two processes at once without harm, and none keeps the others from being done.
 */
export interface ChoreDeps {
  db: Db
  mailDb: Db
  masterKeys: MasterKeys
  auditCheckpointFile: string | undefined
  log: Logger
}

export async function doChores(deps: ChoreDeps): Promise<void> {
  const { db, mailDb, masterKeys, auditCheckpointFile: file, log } = deps
  const chores = {
    'audit checkpoint': () => runCheckpoints({ db, masterKeys, file, log }),
    'expired idempotency keys': () => db.transaction(forgetExpiredAnswers),
    'expired idempotency keys of mail': () => mailDb.transaction(forgetExpiredMailAnswers),
    'old denials': () => db.transaction(purgeDenials),
    'reports heard long ago': () => mailDb.transaction(forgetSeenFeedback),
    'what mail was told long ago': () => mailDb.transaction(forgetApplied),
  }
  for (const [chore, run] of Object.entries(chores)) {
    try {
      await run()
    } catch (error) {
      log.error({ err: error, chore }, 'a chore failed; it is tried again in a minute')
    }
  }
}
