import { purgeAccountChanges } from '../core/control/access/account-changes.ts'
import { purgeEmailChanges } from '../core/control/access/email-change.ts'
import { purgeFailures } from '../core/control/access/password-backoff.ts'
import { purgeDailyCounts, purgeResets } from '../core/control/access/password-reset.ts'
import { purgeSignIns } from '../core/control/access/purge.ts'
import { purgeSignUps } from '../core/control/access/sign-up.ts'
import { purgeActivity } from '../core/control/activity/activity.ts'
import { maintainAttention } from '../core/control/attention/attention.ts'
import { runCheckpoints, type SignerConnection } from '../core/control/audit/checkpoints.ts'
import { purgeDenials } from '../core/control/audit/denials.ts'
import { purgeLookups } from '../core/control/audit/lookups.ts'
import { purgeBulkActions } from '../core/control/bulk/bulk.ts'
import { purgeDiscards } from '../core/control/discards/discards.ts'
import { purgeEvidence } from '../core/control/evidence/evidence.ts'
import { purgeIdempotency } from '../core/control/idempotency/idempotency.ts'
import { purgeExpiredInvitations } from '../core/control/members/invitations.ts'
import { purgeSystemMails } from '../core/control/notifications/system-mails.ts'
import { purgeFirings } from '../core/control/policies/firings.ts'
import { purgeConfirmationMails } from '../core/control/routes/forward-confirmations.ts'
import type { MasterKeys } from '../core/control/secrets/master-keys.ts'
import { foldTotals } from '../core/mail/counters/totals.ts'
import { purgeEndedPaces } from '../core/mail/dispatch/claims.ts'
import { purgeDiscardProgress } from '../core/mail/dispatch/discards.ts'
import { dropBodies } from '../core/mail/dispatch/partitions.ts'
import { countEvents } from '../core/mail/mailbox-providers/count-events.ts'
import { purgeMailIdempotency } from '../core/mail/messages/idempotency.ts'
import { purgeApplied } from '../core/outbox/relay-to-mail.ts'
import type { Cell, Cells } from '../platform/db/cells.ts'
import type { OneStatement, UnscopedDb } from '../platform/db/db.ts'
import { purge, purgeInTransactions } from '../platform/db/purge.ts'
import type { Logger } from '../platform/telemetry/log.ts'
import { Counter } from '../platform/telemetry/metrics.ts'

// The jobs that run once per minute: the audit checkpoint, the totals of the overview, the figures by mailbox provider and the deletion of expired rows. Each is
// idempotent and safe to run concurrently, and the failure of one does not prevent the others from running.

export interface ChoreDeps {
  db: UnscopedDb
  cells: Pick<Cells, 'all'>
  masterKeys: MasterKeys
  /** `elsewhere`: another worker creates the checkpoints. Undefined: no signer. */
  auditSigner?: SignerConnection | 'elsewhere' | undefined
  auditCheckpointFile: string | undefined
  bodyRetentionHours: number
  activityRetentionDays: number
  log: Logger
}

const choreFailures = new Counter(
  'postern_chore_failures_total',
  'Failures of the chores that run every minute.',
  {},
)

export async function doChores(deps: ChoreDeps): Promise<void> {
  const { db, cells, masterKeys, auditSigner: signer, auditCheckpointFile: file, log } = deps
  const purgeEach = (step: (tx: OneStatement) => Promise<number>) => () =>
    eachCell(cells, ({ mail }) => purge(mail, step))
  const chores = {
    'audit checkpoint': async () => {
      if (signer !== 'elsewhere') await runCheckpoints({ db, masterKeys, signer, file, log })
    },
    'totals of sent mail': () => eachCell(cells, ({ mail }) => foldTotals(mail)),
    'projects that need attention': () => purge(db, maintainAttention),
    'expired idempotency keys': () => purge(db, purgeIdempotency),
    'expired idempotency keys of mail': purgeEach(purgeMailIdempotency),
    'ended sign-ins': () => purge(db, purgeSignIns),
    'expired invitations': () => purgeInTransactions(db, purgeExpiredInvitations),
    'old denials': () => purge(db, purgeDenials),
    'old lookups': () => purge(db, purgeLookups),
    'counts of confirmation messages': () => purge(db, purgeConfirmationMails),
    'old system mail': () => purge(db, purgeSystemMails),
    'failed sign-ins': () => purge(db, purgeFailures),
    'expired password resets': () => purge(db, purgeResets),
    'expired changes of addresses': () => purge(db, purgeEmailChanges),
    'mailed changes of accounts': () => purge(db, purgeAccountChanges),
    'expired sign-ups': () => purge(db, purgeSignUps),
    'past daily counts': () => purge(db, purgeDailyCounts),
    'old activity of projects': () => purge(db, purgeActivity('project', deps.activityRetentionDays)),
    'old activity of users': () => purge(db, purgeActivity('user', deps.activityRetentionDays)),
    'old firings': () => purge(db, purgeFirings),
    'old bulk actions': () => purgeInTransactions(db, purgeBulkActions),
    'expired evidence': () => purge(db, purgeEvidence),
    'old discards': () => purge(db, purgeDiscards),
    'progress of old discards': purgeEach(purgeDiscardProgress),
    'state of ended paces': purgeEach(purgeEndedPaces),
    'applied outbox ids': purgeEach(purgeApplied),
    'bodies of sent mail': () =>
      eachCell(cells, async ({ name: cell, mail }) => {
        const done = await dropBodies(mail, deps.bodyRetentionHours)
        if (done.moved + done.dropped.length > 0) log.info({ cell, ...done }, 'dropped bodies of sent mail')
      }),
    // Last, because it takes half a minute if there is much to catch up.
    'mail by mailbox provider': () => eachCell(cells, ({ mail }) => countEvents(mail)),
  }
  for (const [chore, run] of Object.entries(chores)) {
    try {
      await run()
    } catch (error) {
      choreFailures.add({})
      log.error({ err: error, chore }, 'a chore failed; retrying in a minute')
    }
  }
}

/** Runs `work` in every cell. An unavailable cell does not affect the others. */
export async function eachCell(
  { all }: Pick<Cells, 'all'>,
  work: (cell: Cell) => Promise<unknown>,
): Promise<void> {
  const outcomes = await Promise.allSettled(all.map(work))
  const failures = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected'
      ? [new Error(`failed in cell "${all[at]?.name}"`, { cause: outcome.reason })]
      : [],
  )
  const [first] = failures
  if (first) throw failures.length === 1 ? first : new AggregateError(failures, 'failed in several cells')
}
