/**
 * Mail about changes to the ways in which a person signs in, so that a person whose account someone else has taken over learns
 * of it. The change, its row in the user's activity and the mail are written in one transaction. Better Auth writes its changes
 * outside of it: after the row, so that a change is never without a mail (better-auth.ts), or for backup codes before it.
 */
import type { OneStatement, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import {
  type AddressedMail,
  type ComposeDeps,
  noticeDays,
  type QueuedSystemMail,
} from '../notifications/queued-mail.ts'
import { deleteOld, findChange, insertChange } from './account-changes.sql.ts'

/** The maximum number of messages per account in any hour, so that an address cannot be flooded. */
export const mailedPerHour = 5

/**
 * Every operation in a user's activity, with the sentence that is mailed. Null: it does not change the ways to sign in, or the
 * person gets another message about it.
 */
export const userOperations = {
  'auth.add-passkey': 'A passkey was added.',
  // When the address changes, the old address gets a message of its own (email-change.ts).
  'auth.change-email': null,
  'auth.change-password': 'The password was changed.',
  'auth.confirm-email': null,
  'auth.confirm-sign-up': null,
  'auth.confirm-totp': 'An authenticator app was set up as the second factor.',
  'auth.delete-account': null,
  'auth.delete-passkey': 'A passkey was deleted.',
  'auth.disable-totp': 'The authenticator app was removed. The account has no second factor any more.',
  'auth.end-other-sessions': null,
  'auth.end-session': null,
  // The authenticator app is not the second factor until its first code.
  'auth.enroll-totp': null,
  'auth.link-login': 'An identity for single sign-on was connected.',
  'auth.register-invited': null,
  'auth.rename-passkey': null,
  'auth.renew-backup-codes': 'New backup codes were created. The old ones are invalid.',
  'auth.replace-totp': 'The authenticator app was replaced by another one.',
  'auth.reset-password': 'The password was reset with a link.',
  'auth.sign-in': null,
  'auth.sign-out': null,
  'auth.sign-up-at-issuer': null,
  'auth.undo-email': null,
  'auth.unlink-login': 'An identity for single sign-on was disconnected.',
  'invitations.accept': null,
  'users.edit': null,
  'users.link': 'The operator connected an identity for single sign-on.',
  'users.reset':
    'The operator issued a new password and a new authenticator. Passkeys and connected identities were removed.',
  'users.reset-second-factor':
    'The operator removed the authenticator app, the backup codes and the passkeys. The account has no second factor any more.',
  'users.unlink': 'The operator disconnected an identity for single sign-on.',
} as const satisfies Record<string, string | null>

export type UserOperation = keyof typeof userOperations

/** For an operation that is known only when it runs. */
export function userOperation(operation: string): UserOperation {
  if (!Object.hasOwn(userOperations, operation))
    throw new Error(`${operation} is not in the table of user operations`)
  return operation as UserOperation
}

/** Call this after the head of the user's activity is locked, so that concurrent changes are counted one after another. */
export async function mailAccountChange(tx: Tx, userId: number, operation: UserOperation): Promise<void> {
  if (userOperations[operation] === null) return
  await insertChange(tx, userId, operation, { mailedPerHour, days: noticeDays })
}

/** To the address that the account had at the time of the change. */
export async function composeAccountChanged(
  tx: Tx,
  { subject_id }: QueuedSystemMail,
  { publicUrl: { origin, host } }: ComposeDeps,
): Promise<AddressedMail | null> {
  const change = await findChange(tx, subject_id)
  const sentence = change && userOperations[userOperation(change.operation)]
  if (!sentence) return null
  return {
    to: change.email,
    subject: `The ways to sign in to your account at ${host} were changed`,
    blocks: [
      `${sentence} This is about your account at ${origin}. Time of the change: ${timeOf(change.created_at)}.`,
      'If you made or expected this change, there is nothing to do.',
      'If not, someone else may have access to your account:',
      {
        items: [
          `Open ${origin} in your browser and reset the password with "Forgot your password?". This ends all sessions.`,
          'Sign in. On the page of your account, end all other sessions, and remove the authenticator app, the passkeys and the connected identities that are not yours.',
          'Write to the operator of this mail service, also if you cannot sign in any more.',
        ],
      },
      ...(change.is_last
        ? [
            'There were several such changes within an hour. Further ones are not mailed for up to an hour. The activity on the page of your account lists all of them.',
          ]
        : []),
    ],
  }
}

/** "2026-01-31 12:00:00 UTC". */
const timeOf = (at: Date): string => `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`

export const purgeAccountChanges = (tx: OneStatement): Promise<number> =>
  deleteOld(tx, noticeDays, purgedAtOnce)
