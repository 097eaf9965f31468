import { createHash, createHmac, hkdfSync } from 'node:crypto'
import type { Db, OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
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
 * Consent to forwarding (docs/decisions/0021-tombstones-and-consent.md). A route forwards nothing until its target address
 * has confirmed. Postern emails the address a link to a page with a button. Opening the link changes nothing, because
 * mail scanners open links. The states are in server/migrations/000002_control.sql.
 *
 * A token can be used once, within seven days. Only its SHA-256 is stored. The token is derived from the row and its round,
 * so a message that is sent again after a crash has the same token.
 */
export interface ConfirmationDeps {
  db: Db
  /** Undefined if this installation sends no system mail. In that case, no forward becomes active. */
  systemMail: SystemMail | undefined
  forwardConfirmationKey: Buffer
  forwardConfirmationLimits: ConfirmationLimits
  publicUrl: URL
  log: Logger
}

const keyBytes = 32
const lifetimeDays = 7

/** Derived from the first session secret, which is the newest. */
export const forwardConfirmationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern forward confirmations', keyBytes))

const tokenForm = /^fwd_[\w-]{43}$/

const tokenOf = (key: Buffer, { id, round }: Claimed): string =>
  `fwd_${createHmac('sha256', key).update(`${id}/${round}`).digest('base64url')}`

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/**
 * Called after a route was created or edited, so that the confirmation message is sent immediately instead of within a
 * minute.
 */
export async function wakeConfirmations(tx: Tx, jobs: JobSender, row: RouteRow): Promise<void> {
  if (row.forward_to !== null && row.forward_confirmed_at === null) {
    await jobs.send(tx, 'forwards.confirm', {})
  }
}

/**
 * Requests another message with a new link. It is sent as soon as the daily limits allow. Returns the number of that
 * message, or null if none is sent because the target has confirmed or the route does not forward.
 */
export async function requestConfirmation(tx: Tx, jobs: JobSender, row: RouteRow): Promise<number | null> {
  if (row.forward_to === null || row.forward_confirmed_at !== null) return null
  const round = await requestAgain(tx, row.project_id, row.forward_to)
  await wakeConfirmations(tx, jobs, row)
  return round
}

/** After this many failures, the MTAs are assumed to be unavailable. */
const failuresAtMost = 20

/**
 * Sends pending confirmations, oldest first. If a message fails temporarily, its project is postponed and the others
 * continue. Rejects at the end if there was a failure.
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
    log.warn({ err: error, project_id: claimed.project_id }, 'forward confirmation permanently rejected')
  }
  await db.transaction((tx) => markSent(tx, claimed))
}

/** The text is fixed. It names only verified domains, written in a form that mail clients do not turn into links. */
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

/** The path of the page (customer/forward-page.ts). */
export const confirmationPath = '/v1/forwards'

/** The address and domains of a link. Undefined if the link was used, replaced or has expired. */
export const findConfirmation = (
  tx: ReadTx,
  token: string,
): Promise<{ address: string; domain_names: string[] } | undefined> =>
  tokenForm.test(token) ? findByToken(tx, hashOf(token)) : Promise.resolve(undefined)

/**
 * Records the confirmation for each of the project's routes that forwards to the address. False if the link is no longer
 * valid.
 */
export const confirmForward = (tx: Tx, token: string): Promise<boolean> =>
  tokenForm.test(token) ? confirm(tx, hashOf(token)) : Promise.resolve(false)

/** Returns the number of deleted rows. */
export const purgeConfirmationMails = (tx: OneStatement): Promise<number> => deleteOldMails(tx, purgedAtOnce)
