import { createHash, createHmac, hkdfSync } from 'node:crypto'
import type { Db, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import type { JobSender } from '../../../platform/jobs/jobs.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { MailRefused, type SystemMail } from '../notifications/system-mail.ts'
import {
  type Claimed,
  type ConfirmationLimits,
  claimNext,
  confirm,
  deleteOldMails,
  findByToken,
  markSent,
  putOff,
  requestAgain,
  storeToken,
} from './forward-confirmations.sql.ts'
import type { RouteRow } from './routes.sql.ts'

/**
 * Consent to forwards (docs/decisions/0021-tombstones-and-consent.md). A route forwards nothing before the address that it
 * forwards to has confirmed. The address is mailed a link, which opens a page with a button; the link alone changes nothing,
 * because programs that scan mail open links. States are in server/migrations/000002_control.sql.
 *
 * A token is good once, for seven days; only its SHA-256 is kept. It is computed from the row and its round, so that a mail
 * that is sent again after a crash has the same one.
 */
export interface ConfirmationDeps {
  db: Db
  /** Undefined: nothing can be mailed, so no forward becomes active. */
  systemMail: SystemMail | undefined
  forwardConfirmationKey: Buffer
  forwardConfirmationLimits: ConfirmationLimits
  publicUrl: URL
  log: Logger
}

const keyBytes = 32
const lifetimeDays = 7

/** From the first, and so the newest, of the secrets that protect sessions. */
export const forwardConfirmationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern forward confirmations', keyBytes))

const tokenForm = /^fwd_[\w-]{43}$/

const tokenOf = (key: Buffer, { id, round }: Claimed): string =>
  `fwd_${createHmac('sha256', key).update(`${id}/${round}`).digest('base64url')}`

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** After a route was created or edited: the mail that its target has to confirm by is sent at once, not within a minute. */
export async function wakeConfirmations(tx: Tx, jobs: JobSender, row: RouteRow): Promise<void> {
  if (row.forward_to !== null && row.forward_confirmed_at === null) {
    await jobs.send(tx, 'forwards.confirm', {})
  }
}

/**
 * Another mail, with a new link, as soon as the limits of the day allow it. The number of that mail; null: none is sent,
 * because the target has confirmed, or the route forwards nothing.
 */
export async function requestConfirmation(tx: Tx, jobs: JobSender, row: RouteRow): Promise<number | null> {
  if (row.forward_to === null || row.forward_confirmed_at !== null) return null
  const round = await requestAgain(tx, row.project_id, row.forward_to)
  await wakeConfirmations(tx, jobs, row)
  return round
}

/** The MTAs take nothing, it seems. */
const failuresAtMost = 20

/**
 * Those that wait and may be mailed now, oldest first. A project whose mail is not taken now is put off, and others go on;
 * rejects at the end if there was one.
 */
export async function sendConfirmations(
  deps: ConfirmationDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  if (deps.systemMail === undefined) return
  const failures: unknown[] = []
  for (let sent = 0; sent < atMost && failures.length < failuresAtMost && !signal.aborted; ) {
    const { claimed, hasMore } = await claim(deps)
    if (!claimed && !hasMore) break
    if (!claimed) continue
    sent++
    await sendTo(deps, deps.systemMail, claimed).catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

const claim = ({ db, forwardConfirmationKey, forwardConfirmationLimits }: ConfirmationDeps) =>
  db.transaction(async (tx) => {
    const found = await claimNext(tx, forwardConfirmationLimits)
    const { claimed } = found
    if (claimed) await storeToken(tx, claimed, hashOf(tokenOf(forwardConfirmationKey, claimed)), lifetimeDays)
    return found
  })

async function sendTo(
  { db, log, forwardConfirmationKey, publicUrl }: ConfirmationDeps,
  systemMail: SystemMail,
  claimed: Claimed,
): Promise<void> {
  try {
    await systemMail.send(mailOf(claimed, tokenOf(forwardConfirmationKey, claimed), publicUrl))
  } catch (error) {
    if (!(error instanceof MailRefused)) {
      await db.transaction((tx) => putOff(tx, claimed))
      throw error
    }
    log.warn({ err: error, project_id: claimed.project_id }, 'a forward confirmation mail was rejected')
  }
  await db.transaction((tx) => markSent(tx, claimed))
}

/** Fixed words. The names are of verified domains, and written so that no program makes links of them. */
function mailOf(
  { address, domain_names }: Claimed,
  token: string,
  { origin }: URL,
): Parameters<SystemMail['send']>[0] {
  return {
    to: address,
    subject: 'Confirm that you want to receive forwarded mail',
    text: [
      'Someone set up mail forwarding to your address, from addresses at:',
      domain_names.map((name) => `  ${name.replaceAll('.', '[.]')}`).join('\n'),
      `If you want to receive that mail, open this page within ${lifetimeDays} days and press the button:`,
      `${origin}${confirmationPath}/${token}`,
      'If you did not expect this, do nothing: no mail is forwarded to you.',
    ].join('\n\n'),
  }
}

/** Of the page (customer/forward-page.ts). */
export const confirmationPath = '/v1/forwards'

/** What a link is about; undefined when it was used, replaced or has expired. */
export const findConfirmation = (
  tx: ReadTx,
  token: string,
): Promise<{ address: string; domain_names: string[] } | undefined> =>
  tokenForm.test(token) ? findByToken(tx, hashOf(token)) : Promise.resolve(undefined)

/** For every route of the project that forwards to the address. False when the link is not good any more. */
export const confirmForward = (tx: Tx, token: string): Promise<boolean> =>
  tokenForm.test(token) ? confirm(tx, hashOf(token)) : Promise.resolve(false)

/** How many rows went. */
export const purgeConfirmationMails = (tx: Tx): Promise<number> => deleteOldMails(tx, purgedAtOnce)
