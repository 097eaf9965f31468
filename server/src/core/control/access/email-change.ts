/**
 * Changes of an account's address. A link is emailed to the new address, and the address changes when the link is opened. A
 * link to undo the change is then emailed to the old address, for a person whose account someone else has taken over: undoing
 * restores the address, ends all sessions, and removes the password and the passkeys and logins at issuers that were added since
 * the day before the change. An authenticator app stays: removing it would help a person who reads the old mailbox.
 *
 * A request runs the same statements whether or not the new address has an account. The worker looks that up, and the message
 * then says so.
 */
import { createHash, createHmac } from 'node:crypto'
import type { OneStatement, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { addSystemMailUntil } from '../notifications/queued-mail.ts'
import { deleteChallenges, deleteResets } from './access.sql.ts'
import { countToday } from './daily-counts.sql.ts'
import { signInAddress } from './email.ts'
import {
  type AppliedEmailChange,
  confirmChange,
  deleteChanges,
  deleteExpired,
  deleteNewCredentials,
  findConfirmed,
  findRequested,
  insertChange,
  storeHash,
  storeUndoHash,
  undoChange,
} from './email-change.sql.ts'
import { deleteSessionsOf } from './password-reset.sql.ts'

const validHours = 24
/** The maximum number of requests per UTC day: of one account, and for one new address. */
const perAccount = 5
const perAddress = 3

const confirmPrefix = 'eml_'
const undoPrefix = 'emu_'
const tokenForm = /^(?:eml|emu)_[\w-]{43}$/

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Replaces the user's request that is not confirmed yet. Returns the new address. */
export async function requestEmailChange(
  tx: Tx,
  user: { id: number; email: string },
  given: string,
): Promise<string> {
  const email = signInAddress(given)
  if (email === undefined) throw new PosternError('validation_failed', '"email" must be an email address.')
  if (email === user.email) {
    throw new PosternError('validation_failed', '"email" must not be the address of your account.')
  }
  if ((await countToday(tx, 'email changes of user', String(user.id))) > perAccount) {
    throw new PosternError('rate_limited', 'Too many changes of your address today. Try again tomorrow.', {
      retryAfterSeconds: 3600,
    })
  }
  const isMailed = (await countToday(tx, 'email changes of address', email)) <= perAddress
  if (isMailed) await insertChange(tx, user, email, validHours)
  return email
}

/** Changes the address. Returns the change, for the user's activity. */
export async function confirmEmailChange(tx: Tx, token: string): Promise<AppliedEmailChange> {
  const change = tokenForm.test(token) ? await confirmChange(tx, hashOf(token)) : undefined
  if (!change) throw invalidLink()
  if (change.is_taken) throw taken('Another account has this address.')
  // Links that were sent to the old address.
  await deleteResets(tx, change.user_id)
  await deleteChallenges(tx, change.user_id)
  await addSystemMailUntil(tx, 'email_changed', change.id, change.expires_at)
  return change
}

/** Restores the address, ends all sessions, and removes the ways in which a thief could sign in again. */
export async function undoEmailChange(tx: Tx, token: string): Promise<AppliedEmailChange> {
  const change = tokenForm.test(token) ? await undoChange(tx, hashOf(token)) : undefined
  if (!change) throw invalidLink()
  if (change.is_taken) {
    throw taken('Another account has your old address now. Contact the operator of this installation.')
  }
  await deleteNewCredentials(tx, change)
  await deleteChanges(tx, change.user_id)
  await deleteResets(tx, change.user_id)
  await deleteChallenges(tx, change.user_id)
  await deleteSessionsOf(tx, change.user_id)
  return change
}

const invalidLink = (): PosternError =>
  new PosternError('not_found', 'This link is invalid, has already been used, or has expired.')

const taken = (message: string): PosternError => new PosternError('already_exists', message)

const tokenOf = (prefix: string, key: Buffer, mailId: string): string =>
  prefix +
  createHmac('sha256', key)
    .update(prefix + mailId)
    .digest('base64url')

/** To the new address. */
export async function composeEmailChange(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl: { origin, host }, accountKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  const change = await findRequested(tx, subject_id)
  if (!change) return null
  if (change.has_account) {
    return {
      to: change.new_email,
      subject: `You already have an account at ${host}`,
      blocks: [
        `Someone tried to use this address for another account at ${origin}. This address already has an account, so nothing changes.`,
        'If this was you, delete one of the accounts, or use another address.',
      ],
    }
  }
  const token = tokenOf(confirmPrefix, accountKey, id)
  await storeHash(tx, subject_id, hashOf(token))
  return {
    to: change.new_email,
    subject: `Confirm your new email address for ${host}`,
    blocks: [
      `Someone wants to use this address for their account at ${origin}.`,
      `To confirm, open this link. It can be used once and expires at ${change.expires_at.toISOString()}.`,
      { link: `${origin}/app/confirm-email#${token}`, label: 'Confirm your new email address' },
      'If this was not you, ignore this message. Nothing changes.',
    ],
  }
}

/** To the old address. */
export async function composeEmailChanged(
  tx: Tx,
  { id, subject_id }: QueuedSystemMail,
  { publicUrl: { origin, host }, accountKey }: ComposeDeps,
): Promise<AddressedMail | null> {
  const change = await findConfirmed(tx, subject_id)
  if (!change) return null
  const token = tokenOf(undoPrefix, accountKey, id)
  await storeUndoHash(tx, subject_id, hashOf(token))
  return {
    to: change.old_email,
    subject: `The email address of your account at ${host} was changed`,
    blocks: [
      `The address of your account at ${origin} was changed from this address to another one.`,
      'If this was you, there is nothing to do.',
      `If this was not you, undo the change with this link, until ${change.expires_at.toISOString()}. It restores this address, ends all sessions, and removes the password, new passkeys and connected identities. Then choose a new password with "Forgot your password?".`,
      { link: `${origin}/app/undo-email#${token}`, label: 'Undo the change' },
    ],
  }
}

export const purgeEmailChanges = (tx: OneStatement): Promise<number> => deleteExpired(tx, purgedAtOnce)
