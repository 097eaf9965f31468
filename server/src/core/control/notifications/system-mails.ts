import type { Db, OneStatement, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import type { Handover } from '../../../providers/transport.ts'
import { composers } from './composers.ts'
import type { ComposeDeps } from './queued-mail.ts'
import type { AddressedMail, SystemMailSender } from './system-mail.ts'
import {
  type ClaimedMail,
  claimNext,
  countNew,
  deleteFinished,
  finish,
  finishExpired,
  kinds,
  retryLater,
} from './system-mails.sql.ts'

/**
 * The queue of system mail (docs/decisions/0034-own-queue-for-system-mail.md; the states are in
 * server/migrations/000002_control.sql).
 *
 * A worker leases a mail, composes it, hands it over to an MTA and records the outcome: three transactions and, between the
 * last two, the call. A worker that dies leaves a lease that ends, and another worker repeats the steps. The mail is then the
 * same: it has the same Message-ID and the same token. Mail goes out twice only if the worker dies, or the connection breaks,
 * between the MTA's acceptance and the commit of its record.
 */
export interface SystemMailDeps extends ComposeDeps {
  db: Db
  /** Undefined if this installation sends no system mail. */
  systemMail: SystemMailSender | undefined
  log: Logger
}

/** Handed over concurrently, so that one slow reply does not delay all mail. */
const atOnce = 4

/** The delays after the first failures; the last one is repeated until the mail expires. */
const retryMinutes = [1, 2, 5, 10, 15] as const
/** Rounds are a minute apart, and an attempt is recorded some time after its round began. */
const earlySeconds = 10
const delayAfter = (attempts: number): number =>
  (retryMinutes[Math.min(attempts, retryMinutes.length) - 1] ?? retryMinutes[0]) * 60 - earlySeconds

const mailCount = new Counter(
  'postern_system_mails_total',
  'System mail: finished mail and failed attempts (`deferred`), by kind and outcome.',
  { kind: kinds, outcome: ['sent', 'deferred', 'rejected', 'expired', 'obsolete', 'bounced'] },
)

/** Sends what is due, until the signal aborts or no MTA can be reached. */
export async function sendSystemMails(
  deps: SystemMailDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  const { db, systemMail, log } = deps
  for (const { id, kind, ...rest } of await db.transaction(finishExpired)) {
    mailCount.add({ kind, outcome: 'expired' })
    log.error({ system_mail_id: id, kind, ...rest }, 'system mail could not be sent in time')
  }
  if (systemMail === undefined) {
    const count = await db.read(countNew)
    if (count > 0) {
      log.warn({ count }, 'system mail not sent: set POSTERN_SYSTEM_MAIL_FROM and POSTERN_MTA_HOSTS')
    }
    return
  }
  let left = atMost
  let isReachable = true
  const run = async () => {
    while (isReachable && left-- > 0 && !signal.aborted && !systemMail.isUnavailable) {
      const claimed = await db.transaction(claimNext)
      if (claimed === undefined) return
      // The other mail stays due, instead of being delayed one after another.
      if ((await sendOne(deps, systemMail, claimed)) === 'unreachable') isReachable = false
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
}

async function sendOne(
  deps: SystemMailDeps,
  systemMail: SystemMailSender,
  claimed: ClaimedMail,
): Promise<'unreachable' | undefined> {
  const { db } = deps
  let mail: AddressedMail | null
  let handover: Handover
  try {
    mail = await db.transaction(async (tx) => {
      const composed = await composers[claimed.kind](tx, claimed, deps)
      if (composed === null) await finish(tx, claimed, { outcome: 'obsolete', status: null })
      return composed
    })
    if (mail === null) {
      mailCount.add({ kind: claimed.kind, outcome: 'obsolete' })
      return undefined
    }
    handover = await systemMail.send(claimed.id, claimed.created_at, mail)
  } catch (error) {
    // A mail that cannot be composed must not stay in front of all others.
    await defer(deps, claimed, null, error)
    return undefined
  }
  await db.transaction((tx) => record(deps, tx, claimed, handover))
  return handover.kind === 'unreachable' && !handover.mayBeSent ? 'unreachable' : undefined
}

async function record(
  { log }: SystemMailDeps,
  tx: Tx,
  claimed: ClaimedMail,
  handover: Handover,
): Promise<void> {
  const { kind } = claimed
  if (handover.kind === 'sent') {
    if (await finish(tx, claimed, { outcome: 'sent', status: null })) mailCount.add({ kind, outcome: 'sent' })
    return
  }
  if (handover.kind === 'refused' && handover.isPermanent) {
    const { status, reply } = handover
    if (!(await finish(tx, claimed, { outcome: 'rejected', status }))) return
    mailCount.add({ kind, outcome: 'rejected' })
    log.warn({ ...about(claimed), reply }, 'system mail permanently rejected')
    return
  }
  const status = handover.kind === 'refused' ? handover.status : null
  const why = handover.kind === 'refused' ? handover.reply : handover.detail
  await deferIn(log, tx, claimed, status, why)
}

const defer = (
  { db, log }: SystemMailDeps,
  claimed: ClaimedMail,
  status: string | null,
  error: unknown,
): Promise<void> => db.transaction((tx) => deferIn(log, tx, claimed, status, error))

async function deferIn(
  log: Logger,
  tx: Tx,
  claimed: ClaimedMail,
  status: string | null,
  why: unknown,
): Promise<void> {
  const delaySeconds = delayAfter(claimed.attempts)
  if (!(await retryLater(tx, claimed, { delaySeconds, status }))) return
  mailCount.add({ kind: claimed.kind, outcome: 'deferred' })
  const line = { ...about(claimed), retry_in_seconds: delaySeconds }
  if (why instanceof Error) log.error({ ...line, err: why }, 'system mail could not be composed, will retry')
  else log.warn({ ...line, reply: why }, 'system mail not accepted, will retry')
}

const about = ({ id, kind, project_id, attempts }: ClaimedMail) => ({
  ...{ system_mail_id: id, kind, project_id, attempts },
})

export const purgeSystemMails = (tx: OneStatement): Promise<number> => deleteFinished(tx, purgedAtOnce)
