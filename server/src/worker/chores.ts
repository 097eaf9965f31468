import { purgeFailures } from '../core/control/access/password-backoff.ts'
import { purgeDailyCounts, purgeResets } from '../core/control/access/password-reset.ts'
import { purgeSignIns } from '../core/control/access/purge.ts'
import { purgeActivity } from '../core/control/activity/activity.ts'
import { runCheckpoints, type SignerPlace } from '../core/control/audit/checkpoints.ts'
import { purgeDenials } from '../core/control/audit/denials.ts'
import { purgeIdempotency } from '../core/control/idempotency/idempotency.ts'
import { purgeExpiredInvitations } from '../core/control/members/invitations.ts'
import { purgeConfirmationMails } from '../core/control/routes/confirmations.ts'
import type { MasterKeys } from '../core/control/secrets/master-keys.ts'
import { dropBodies } from '../core/mail/dispatch/partitions.ts'
import { purgeFeedbackSeen } from '../core/mail/feedback/feedback.ts'
import { purgeMailIdempotency } from '../core/mail/messages/idempotency.ts'
import { purgeApplied } from '../core/outbox/relay-to-mail.ts'
import type { Cell, Cells } from '../platform/db/cells.ts'
import type { Db, Tx } from '../platform/db/db.ts'
import { purge } from '../platform/db/purge.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { metrics } from '../platform/telemetry/metrics.ts'

/**
 * What is done once a minute: signing the audit, and forgetting what has had its time. Each can be run twice or by
 * two processes at once without harm, and none keeps the others from being done.
 */
export interface ChoreDeps {
  db: Db
  cells: Pick<Cells, 'all'>
  masterKeys: MasterKeys
  /** `elsewhere`: the worker beside it makes the checkpoints. Undefined: there is none. */
  auditSigner?: SignerPlace | 'elsewhere' | undefined
  auditCheckpointFile: string | undefined
  bodyRetentionHours: number
  activityRetentionDays: number
  log: Logger
}

export async function doChores(deps: ChoreDeps): Promise<void> {
  const { db, cells, masterKeys, auditSigner: signer, auditCheckpointFile: file, log } = deps
  const purgeEach = (step: (tx: Tx) => Promise<number>) => () =>
    eachCell(cells, ({ mail }) => purge(mail, step))
  const chores = {
    'audit checkpoint': async () => {
      if (signer !== 'elsewhere') await runCheckpoints({ db, masterKeys, signer, file, log })
    },
    'expired idempotency keys': () => purge(db, purgeIdempotency),
    'expired idempotency keys of mail': purgeEach(purgeMailIdempotency),
    'sign-ins that have ended': () => purge(db, purgeSignIns),
    'expired invitations': () => purge(db, purgeExpiredInvitations),
    'old denials': () => purge(db, purgeDenials),
    'counts of confirmation mails': () => purge(db, purgeConfirmationMails),
    'failed sign-ins': () => purge(db, purgeFailures),
    'expired password resets': () => purge(db, purgeResets),
    'counts of earlier days': () => purge(db, purgeDailyCounts),
    'old activity of projects': () => purge(db, purgeActivity('project', deps.activityRetentionDays)),
    'old activity of users': () => purge(db, purgeActivity('user', deps.activityRetentionDays)),
    'reports heard long ago': purgeEach(purgeFeedbackSeen),
    'what mail was told long ago': purgeEach(purgeApplied),
    'bodies of mail that has left': () =>
      eachCell(cells, async ({ name: cell, mail }) => {
        const done = await dropBodies(mail, deps.bodyRetentionHours)
        if (done.moved + done.dropped.length > 0) log.info({ cell, ...done }, 'bodies of mail')
      }),
  }
  for (const [chore, run] of Object.entries(chores)) {
    try {
      await run()
    } catch (error) {
      metrics.choreFailures.add({})
      log.error({ err: error, chore }, 'a chore failed; it is tried again in a minute')
    }
  }
}

/** One that is away keeps no other from its turn. */
export async function eachCell(
  { all }: Pick<Cells, 'all'>,
  work: (cell: Cell) => Promise<unknown>,
): Promise<void> {
  const outcomes = await Promise.allSettled(all.map(work))
  const failures = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected'
      ? [new Error(`it failed in the cell "${all[at]?.name}"`, { cause: outcome.reason })]
      : [],
  )
  const [first] = failures
  if (first) throw failures.length === 1 ? first : new AggregateError(failures, 'it failed in several cells')
}
