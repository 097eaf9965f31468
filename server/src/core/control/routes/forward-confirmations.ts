import { createHash, createHmac, hkdfSync } from 'node:crypto'
import type { Db, OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import type { JobSender } from '../../../platform/jobs/jobs.ts'
import { linkless } from '../notifications/customer-text.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import {
  type ConfirmationLimits,
  confirm,
  deleteOldMails,
  findByToken,
  lockReleased,
  releaseDue,
  requestAgain,
  returnToPending,
  storeToken,
} from './forward-confirmations.sql.ts'
import type { RouteRow } from './routes.sql.ts'

/**
 * Consent to forwarding (docs/decisions/0021-tombstones-and-consent.md). A route forwards nothing until its target address
 * has confirmed. Postern emails the address a link to a page with a button. Opening the link changes nothing, because
 * mail scanners open links. The states are in server/migrations/000002_control.sql.
 *
 * A token can be used once, within seven days. Only its SHA-256 is stored. The token is derived from the id of the mail
 * (core/control/notifications), so a mail that is sent again after a crash has the same token. If this installation sends no
 * system mail, no forward becomes active.
 */
export interface ConfirmationDeps {
  db: Db
  forwardConfirmationLimits: ConfirmationLimits
}

const keyBytes = 32
const lifetimeDays = 7

/** Derived from the first session secret, which is the newest. */
export const forwardConfirmationKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern forward confirmations', keyBytes))

const tokenForm = /^fwd_[\w-]{43}$/

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

/**
 * Adds the confirmations that may be mailed now to the queue of system mail, oldest first. The others stay pending: while
 * their domain is not verified, their project is locked, or a daily limit is reached.
 */
export async function releaseConfirmations(
  { db, forwardConfirmationLimits }: ConfirmationDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> {
  for (let released = 0; released < atMost && !signal.aborted; ) {
    const { isReleased, hasMore } = await db.transaction((tx) => releaseDue(tx, forwardConfirmationLimits))
    if (!isReleased && !hasMore) return
    if (isReleased) released++
  }
}

/**
 * The text is fixed. It names only verified domains, written in a form that mail clients do not turn into links. If the
 * domains are not verified any more, the confirmation is pending again.
 */
export async function composeConfirmation(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl: { origin }, forwardConfirmationKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  const confirmation = await lockReleased(tx, subject_id)
  if (!confirmation) return null
  const { address, domain_names, is_locked } = confirmation
  if (domain_names === null || is_locked) {
    await returnToPending(tx, subject_id)
    return null
  }
  const token = `fwd_${createHmac('sha256', forwardConfirmationKey).update(id).digest('base64url')}`
  await storeToken(tx, subject_id, hashOf(token), lifetimeDays)
  return {
    to: address,
    subject: 'Confirm that you want to receive forwarded mail',
    blocks: [
      'Someone set up mail forwarding to your address, from addresses at:',
      { items: domain_names.map(linkless) },
      `If you want to receive that mail, open this page within ${lifetimeDays} days and press the button.`,
      { link: `${origin}${confirmationPath}/${token}`, label: 'Confirm the forwarding' },
      'If you did not expect this, do nothing: no mail is forwarded to you.',
    ],
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
