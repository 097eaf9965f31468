/**
 * Email notices to project owners. A notice is a row that is deleted after its message has been handed off to the MTA, so
 * each notice is emailed at least once, even after a crash. Notices older than a week are deleted unsent.
 */
import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { MailRefused, type SystemMail } from './system-mail.ts'

export interface OwnerNoticeDeps {
  db: Db
  /** Undefined if this installation sends no system mail. */
  systemMail: SystemMail | undefined
  publicUrl: URL
  log: Logger
}

export interface OwnerNotices<Notice> {
  /** What the notice is about, for the log, such as "a domain". */
  subject: string
  list(tx: ReadTx, atMost: number): Promise<Notice[]>
  delete(tx: Tx, notice: Notice): Promise<void>
  deleteLate(tx: Tx): Promise<void>
  idsOf(notice: Notice): object
  /** Null if the notice no longer applies or the owner is disabled. */
  mailFor(notice: Notice, publicUrl: URL): Parameters<SystemMail['send']>[0] | null
}

/** Sends pending notices, oldest first, until the signal aborts. */
export async function sendOwnerNotices<Notice>(
  notices: OwnerNotices<Notice>,
  { db, systemMail, publicUrl, log }: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  const { subject, idsOf } = notices
  await db.transaction((tx) => notices.deleteLate(tx))
  for (const notice of await db.read((tx) => notices.list(tx, atMost))) {
    if (signal.aborted) return
    const mail = notices.mailFor(notice, publicUrl)
    if (mail && !systemMail) {
      log.warn(idsOf(notice), `notice to the owner of ${subject} not mailed: set POSTERN_SYSTEM_MAIL_FROM`)
    }
    try {
      if (mail) await systemMail?.send(mail)
    } catch (error) {
      const isRefused = error instanceof MailRefused
      const outcome = isRefused ? 'permanently rejected' : 'failed, will retry'
      log.warn({ err: error, ...idsOf(notice) }, `notice to the owner of ${subject} ${outcome}`)
      if (!isRefused) continue
    }
    await db.transaction((tx) => notices.delete(tx, notice))
  }
}
