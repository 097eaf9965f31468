import type { Db } from '../../platform/db/db.ts'
import type { Logger } from '../../platform/log.ts'
import { MailRefused, type SystemMail } from '../members/system-mail.ts'
import { deleteLate, deleteNotice, listNotices, type Notice } from './notices.sql.ts'

/**
 * Mail to the owner of a project whose endpoint was switched off (standing.ts). A row waits until the mail was handed
 * over, so that it is sent at least once, whoever dies; a week later nobody needs to be told any more.
 */
export interface NoticeDeps {
  db: Db
  /** Undefined: nothing can be mailed. */
  systemMail: SystemMail | undefined
  publicUrl: URL
  log: Logger
}

/** Those that wait, oldest first, until told to stop. */
export async function sendNotices(deps: NoticeDeps, atMost: number, signal: AbortSignal): Promise<void> {
  const { db, log } = deps
  await db.transaction(deleteLate)
  for (const notice of await db.read((tx) => listNotices(tx, atMost))) {
    if (signal.aborted) return
    try {
      await send(deps, notice)
    } catch (error) {
      log.warn({ err: error, ...about(notice) }, 'the owner of an endpoint could not be mailed; tried again')
      continue
    }
    await db.transaction((tx) => deleteNotice(tx, notice))
  }
}

const about = ({ project_id, endpoint_id }: Notice) => ({ project_id, endpoint_id })

async function send({ systemMail, publicUrl, log }: NoticeDeps, notice: Notice): Promise<void> {
  const { email, disabled_reason } = notice
  // Switched on meanwhile, or of somebody who is not let in any more: there is nobody to be told.
  if (email === null || disabled_reason === null) return
  if (systemMail === undefined) {
    log.warn(
      about(notice),
      'an endpoint was switched off, and its owner is not mailed: see POSTERN_SYSTEM_MAIL_FROM',
    )
    return
  }
  try {
    await systemMail.send({ to: email, ...letterOf({ ...notice, disabled_reason }, publicUrl) })
  } catch (error) {
    if (!(error instanceof MailRefused)) throw error
    log.warn({ err: error, ...about(notice) }, 'the mail to the owner of an endpoint was refused for good')
  }
}

function letterOf(
  { project_id, endpoint_id, name, url, project_name, disabled_reason }: Notice & { disabled_reason: string },
  { origin }: URL,
): { subject: string; text: string } {
  const path = `${origin}/v1/projects/${project_id}/endpoints/${endpoint_id}`
  return {
    subject: `Endpoint "${name}" was switched off`,
    text: [
      `The endpoint "${name}" of your project "${project_name}" was switched off, and receives nothing any more.`,
      `Its address: ${url}`,
      `Why: ${disabled_reason}`,
      `What it answered is listed at ${path}/attempts.`,
      `When it works again, switch it on: PATCH ${path} with "is_active": true. Events that it missed can then be had again: POST ${path}/replay.`,
    ].join('\n\n'),
  }
}
